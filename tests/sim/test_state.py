import pytest

from llmgw.sim import state as states
from llmgw.sim.faults import Fault, FaultKind
from llmgw.sim.state import Seen, Settings, SimState, exposition


def test_an_unloaded_model_is_gone_and_the_others_stay():
    state = SimState(Settings(models=("m", "n")))

    state.faults.add(Fault(FaultKind.UNLOAD, model="m"))

    assert state.models == ("n",)


def test_ids_name_the_node_and_never_repeat():
    state = SimState(Settings(name="a"))

    ids = {state.new_id("chatcmpl-") for _ in range(50)}

    assert len(ids) == 50
    assert all(one.startswith("chatcmpl-a-") for one in ids)


def test_the_oldest_response_makes_room(monkeypatch):
    monkeypatch.setattr(states, "KEPT", 2)
    state = SimState(Settings())

    for id_ in ("one", "two", "three"):
        state.keep_response({"id": id_})

    assert list(state.responses) == ["two", "three"]


def test_a_request_that_fails_no_longer_runs():
    state = SimState(Settings())

    def fail():
        with state.at_work():
            raise RuntimeError(state.running)

    with pytest.raises(RuntimeError, match="1"):
        fail()
    assert state.running == 0


def test_the_first_end_of_a_request_counts():
    seen = Seen("/v1/completions")

    seen.end("cut")
    seen.end("cancelled")

    assert seen.to_json()["outcome"] == "cut"


def test_load_is_exposed_in_the_names_of_the_engine():
    state = SimState(Settings(models=('a"b', "alias"), tokens=10, max_model_len=100))
    state.generation_tokens = 7

    with state.at_work(), state.at_work():
        text = exposition(state)

    labels = '{engine="0",model_name="a\\"b"}'
    assert f"vllm:num_requests_running{labels} 2.0\n" in text
    assert f"vllm:num_requests_waiting{labels} 0.0\n" in text
    assert f"vllm:kv_cache_usage_perc{labels} 0.2\n" in text
    assert f"vllm:generation_tokens_total{labels} 7.0\n" in text
    assert "alias" not in text
