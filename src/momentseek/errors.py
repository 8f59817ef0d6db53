"""The exceptions a user may ever see: what is wrong, where, and what to do about it.

A sentence that asks for another argument names the Python parameter, in one of these forms:

    count such queries as 0 (missing="zero")      overwrite it (force=True)      wait for it (wait=600)
    give the training set (`train`)               give a list of videos (videos=…)

The command line writes them as its flags (``--missing zero``, ``--force``, ``--wait 600``, ``--train``,
``--videos``), where the command has such a flag; see ``momentseek.cli.flags``. Whole commands, as in "run
`momentseek verify --repair`", are given as people type them.
"""


class MomentseekError(Exception):
    """Bad input, said in one sentence; the command line prints it and exits with code 2.

    >>> raise MomentseekError("run.json: query 12 stands twice; keep one of them")
    Traceback (most recent call last):
        ...
    momentseek.errors.MomentseekError: run.json: query 12 stands twice; keep one of them
    """

    exit_code = 2


class MediaError(MomentseekError):
    """A file that cannot be used as a video or subtitle; a command over many files reports it and goes on."""


class LibraryError(MomentseekError):
    """A library whose files cannot be used now: damaged, of another release, or out of reach."""


class LibraryBusyError(LibraryError):
    """A library that another process is writing to; waiting helps."""
