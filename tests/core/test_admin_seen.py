"""What is kept of attempts, and what it adds up to."""

from llmgw.core.admin_seen import BUCKETS, UNSEEN, Sample, Sighting, total_of


def test_samples_add_up():
    total = total_of((Sample(3, 1, 2, 0.5), Sample(1, 1, 0, 0.0)))

    assert total == Sample(4, 2, 2, 0.5)
    assert total.error_share == 0.5
    assert total.first_event == 0.25


def test_nothing_asked_is_no_share_and_no_time():
    assert Sample().error_share is None
    assert Sample().first_event is None
    assert total_of(()) == Sample()


def test_a_sighting_totals_its_samples():
    assert Sighting(samples=(Sample(1), Sample(2, 1))).total == Sample(3, 1)
    assert UNSEEN.total == Sample()
    assert len(UNSEEN.samples) == BUCKETS
