"""Labelling: prompts -> answers of weak and strong models -> scores -> quality deltas.

=================  ====================================================================
prompts            read and check prompts
config             models, settings, budget (``label.toml`` or flags)
client             one request to an OpenAI-compatible endpoint
requests           what is sent for a prompt, with tools native or written out
answering          ask, keep every answer, stop at the budget
graders, sandbox   grade by program; unit tests in a limited process
judge, judging     grade by model, both orders
scoring            one score per prompt, model and dimension
records            what stored answers, verdicts and scores must look like
output, interrupt  the run folder, held by one run at a time; SIGTERM as Ctrl-C
deltas             the public outcome table and strong - weak
run                the stages together, and the files of a run folder
local_server       serve a GGUF file on 127.0.0.1 (optional)
=================  ====================================================================
"""
