"""What holds for every test."""

from hypothesis import HealthCheck, settings

# Its own limits on an example's time would make timed tests of all that use it.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")
