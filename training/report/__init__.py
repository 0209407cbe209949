"""An evaluation as files: results.json, tables as CSV, and one self-contained HTML page."""

from training.report.files import check_output, evaluation_files, write_evaluation
from training.report.page import render_page

__all__ = ["check_output", "evaluation_files", "render_page", "write_evaluation"]
