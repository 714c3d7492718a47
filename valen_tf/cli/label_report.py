"""`valen-tf report`: the label report of a run."""

from valen_tf.cli import terminal


def add(commands):
    """Adds the command to the parser's."""
    command = commands.add_parser(
        "report",
        help="the label report of a finished run: which labels to look at first, as a page",
        description="Writes RUN/report.html, which opens in any browser without a network. "
        "Corrections that are ticked there are downloaded as CSV: "
        "`valen-tf train ... data.corrections=corrections.csv --out NEW` trains with them.",
    )
    command.add_argument("folder", metavar="RUN", help="run folder")
    command.add_argument("--output", help="HTML file to write (default: report.html in RUN)")
    command.add_argument(
        "--frame", metavar="FILE", help="the labels as a table as well, .csv or .parquet"
    )
    command.set_defaults(run=_report, quiet=False)


def _report(options):
    from valen_tf import runs
    from valen_tf.data.harmless import printable

    runs.check_finished(options.folder)
    terminal.load_tensorflow()
    page = runs.report(options.folder, options.output, options.frame)
    print(printable(f"The label report is {page}."), flush=True)
    if options.frame:
        print(printable(f"The labels are in {options.frame}."), flush=True)
