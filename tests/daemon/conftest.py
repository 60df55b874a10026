"""A start and a reload set up the logs of the whole process; a test gives them back."""

import logging

import pytest


@pytest.fixture(autouse=True)
def logging_as_it_was():
    names = ("llmgw", "llmgw.access")
    loggers = [logging.root, *map(logging.getLogger, names)]
    before = [(one, one.handlers[:], one.level, one.disabled) for one in loggers]
    raises = logging.raiseExceptions
    yield
    logging.raiseExceptions = raises
    for logger, handlers, level, disabled in before:
        logger.handlers[:] = handlers
        logger.setLevel(level)
        logger.disabled = disabled
