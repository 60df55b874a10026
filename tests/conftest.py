"""What holds for every test."""

from hypothesis import HealthCheck, settings

from llmgw.compiled import IS_COMPILED

# Its own limits on an example's time would make timed tests of all that use it.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


def pytest_collection_modifyitems(config, items):
    """Where the modules run compiled, what only holds for them as they are written is left out."""
    left = [one for one in items if IS_COMPILED and one.get_closest_marker("as_written")]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [one for one in items if one not in left]
