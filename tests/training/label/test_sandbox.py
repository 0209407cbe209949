import sys
import textwrap

import pytest

from training.label.code import extract_code
from training.label.graders import Answer, grade
from training.label.sandbox import Limits, run_test, run_unit_tests, split_assert

QUICK = Limits(cpu_s=1, wall_s=8.0)
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the sandbox needs POSIX limits")


def passes(code, *tests):
    return [result.passed for result in run_unit_tests(textwrap.dedent(code), tests, QUICK)]


def test_each_assert_counts_alone():
    code = "def double(x): return x * 2"
    assert passes(code, "assert double(2) == 4", "assert double(2) == 5", "assert double('a') == 'aa'") == [True, False, True]


@pytest.mark.parametrize(
    ("code", "test", "right"),
    [
        ("def f(): return [1, (2, {3})]", "assert f() == [1, (2, {3})]", True),
        ("def f(): return (1, 2)", "assert f() == [1, 2]", False),
        ("def f(): return {'a': [None, 1.5]}", "assert f() == {'a': [None, 1.5]}", True),
        ("def f(): return 1", "assert f() is True", False),
        ("def f(): return True", "assert f() is True", True),
        ("def f(): return None", "assert f() is None", True),
        ("def f(): return 0.1 + 0.2", "assert abs(f() - 0.3) < 1e-9", True),
        ("def f(): return 'x'", "assert isinstance(f(), str)", True),
        ("def f(): return 'x'", "assert isinstance(f(), int)", False),
        ("def f(l): l.append(1)", "l = [0]\nf(l)\nassert l == [0, 1]", True),
        ("from collections import Counter\ndef f(): return Counter('aab')", "assert f() == {'a': 2, 'b': 1}", True),
        ("def f(x):\n    raise ValueError(x)", "try:\n    f(1)\n    assert False\nexcept ValueError:\n    pass", True),
        ("def f(): return '日本語\\ud800'", "assert f() == 'x'", False),
    ],
)
def test_values_keep_their_types(code, test, right):
    assert run_test(code, test, QUICK).passed is right


@pytest.mark.parametrize(
    "body",
    [
        "import sys; sys.exit(0)",
        "import os; os._exit(0)",
        "import os; os.fork(); return 4",
        "import subprocess; subprocess.run(['true']); return 4",
        "import socket; socket.create_connection(('127.0.0.1', 9)); return 4",
        "import ctypes; ctypes.CDLL(None); return 4",
        "open('/etc/passwd').read(); return 4",
        "open('left-behind', 'w').write('x'); return 4",
        "import os; os.remove('/tmp/x'); return 4",
        "return [0] * 10**11",
        "return 'x' * 400_000",
        "raise KeyboardInterrupt",
        "return f(n)",
        "return open",
        "import sys; sys._getframe(1).f_locals; raise SystemExit",
    ],
)
def test_misbehaviour_scores_nothing(body):
    assert passes(f"def f(n):\n    {body}", "assert f(2) == 4") == [False]


def test_objects_equal_to_everything_do_not_pass():
    code = """
        class Any:
            def __eq__(self, other): return True
        class Cheat(int):
            def __eq__(self, other): return True
        def f(n): return Any() if n else Cheat(3)
    """
    assert passes(code, "assert f(1) == 4", "assert f(0) == 4") == [False, False]


def test_printing_and_writing_to_descriptors_prove_nothing():
    code = """
        import os, json
        def f(n):
            for message in ({"nonce": ""}, {"nonce": "0" * 32}, {"value": ["plain", 4]}, {}):
                print(json.dumps(message))
                for fd in range(1, 32):
                    try: os.write(fd, json.dumps(message).encode())
                    except OSError: pass
            os._exit(0)
    """
    assert passes(code, "assert isinstance(f(2), int)") == [False]


def test_redefined_builtins_do_not_reach_the_report():
    code = 'import os, json\njson.dumps = lambda *a, **k: \'{"value": ["plain", 4]}\'\nos.write = None\nos._exit = None\ndef f(n): return 3'
    assert passes(code, "assert f(2) == 4") == [False]


def test_endless_loops_and_floods_end_by_the_limits():
    loop = run_unit_tests("def f(n):\n    while True: pass", ["assert f(2) == 4"] * 4, Limits(cpu_s=1, wall_s=3.0))
    assert [result.passed for result in loop] == [False] * 4
    assert loop[-1].detail == "skipped after timeouts"
    flood = run_test("def f(n):\n    while True: print('x' * 100000)", "assert f(2) == 4", Limits(cpu_s=1, wall_s=3.0))
    assert not flood.passed
    sleep = run_test("import time\ndef f(n): time.sleep(60)", "assert f(2) == 4", Limits(wall_s=0.7))
    assert sleep.detail == "timeout"


def test_expected_literals_stay_with_the_parent():
    assert split_assert("x = 1\nassert f(x) == [1, 2]") == ("x = 1", "f(x)", [1, 2])
    assert split_assert("assert sorted(f(1)) == f(2)")[1] is None


FENCED = "Here you go:\n```python\ndef f(x):\n    return x\n```\nThis returns x."


@pytest.mark.parametrize(
    "answer",
    [
        FENCED,
        "def f(x):\n    return x",
        "Sure!\n\ndef f(x):\n    return x\n\nIt works as asked.",
        "```\ndef f(x):\n    return x",
        "```python\nprint('example')\n```\n" + FENCED + "\n```python\nf(3)\n```",
        "```python\ndef f(x):\n    return x\n\nf(\n```",
        "```py\nf = lambda x: x\n```",
        "  \n```python\nimport math\n\ndef f(x):\n    return x\n```",
    ],
)
def test_code_is_found_in_prose(answer):
    code = extract_code(answer, "f")
    assert code is not None
    assert passes(code, "assert f(3) == 3") == [True]


@pytest.mark.parametrize("answer", ["no code", "```python\ndef g(x): return x\n```", "def f(x) return x", "", "\x00def f(x): return x"])
def test_no_code_is_no_code(answer):
    assert extract_code(answer, "f") is None


def test_score_is_the_share_of_asserts():
    grader = {"kind": "unit_tests", "entry": "f", "tests": ["assert f(1) == 1", "assert f(2) == 4"]}
    result = grade(grader, Answer(FENCED))
    assert (result.correctness, result.completeness, result.instruction_following) == (0.5, 1.0, 0.5)
