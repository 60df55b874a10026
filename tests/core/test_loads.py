"""How busy an engine is, by the metrics of four engines and two GPU exporters."""

import pytest

from llmgw.core.fleet import EngineLoad, Gpu
from llmgw.core.loads import MAX_GPUS, parse_gpus, parse_load
from tests.counting import calls, grows_evenly

VLLM = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="org/llama"} 3.0
vllm:num_requests_running{engine="1",model_name="org/llama"} 2.0
vllm:num_requests_waiting{engine="0",model_name="org/llama"} 1.0
vllm:num_requests_waiting{engine="1",model_name="org/llama"} 0.0
vllm:num_requests_waiting_by_reason{engine="0",reason="capacity"} 99.0
vllm:kv_cache_usage_perc{engine="0",model_name="org/llama"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="org/llama"} 0.75
vllm:iteration_tokens_total_bucket{engine="0",le="1.0",model_name="org/llama"} 12.0
"""
OLD_VLLM = """\
vllm:num_requests_running{model_name="m"} 1.0
vllm:gpu_cache_usage_perc{model_name="m"} 0.5
"""
SGLANG = """\
sglang:num_running_reqs{model_name="m"} 4.0
sglang:num_queue_reqs{model_name="m"} 5.0
sglang:token_usage{model_name="m"} 0.28
"""
LLAMA_CPP = """\
llamacpp:requests_processing 1
llamacpp:requests_deferred 2
llamacpp:kv_cache_usage_ratio 0.1
"""
TGI = """\
# TYPE tgi_batch_current_size gauge
tgi_batch_current_size 6
# TYPE tgi_queue_size gauge
tgi_queue_size 7
"""


@pytest.mark.parametrize(
    ("text", "load"),
    [
        pytest.param(VLLM, EngineLoad(5, 1, 0.75), id="vLLM with two engines"),
        pytest.param(OLD_VLLM, EngineLoad(1, 0, 0.5), id="vLLM before 0.10"),
        pytest.param(SGLANG, EngineLoad(4, 5, 0.28), id="SGLang"),
        pytest.param(LLAMA_CPP, EngineLoad(1, 2, 0.1), id="llama.cpp"),
        pytest.param(TGI, EngineLoad(6, 7, 0.0), id="TGI"),
        pytest.param(VLLM.replace("\n", "\r\n"), EngineLoad(5, 1, 0.75), id="CR LF"),
        pytest.param(
            "llamacpp:requests_processing 2 1700000000000", EngineLoad(2, 0, 0), id="time"
        ),
        pytest.param("llamacpp:requests_processing{} 2", EngineLoad(2, 0, 0), id="empty labels"),
        pytest.param("tgi_batch_current_size\t2", EngineLoad(2, 0, 0), id="a tab"),
        pytest.param(
            'vllm:num_requests_running{model_name="a} 9 \\" b"} 1',
            EngineLoad(1, 0, 0),
            id="quoted",
        ),
        pytest.param(
            "sglang:num_running_reqs 1\nsglang:token_usage 7.5",
            EngineLoad(1, 0, 1),
            id="over 1",
        ),
    ],
)
def test_load_is_read_under_the_names_of_each_engine(text, load):
    assert parse_load(text.encode()) == load


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("<html>vllm:num_requests_running 3</html>", id="HTML"),
        pytest.param("vllm:num_requests_waiting 3", id="no word of running ones"),
        pytest.param("vllm:num_requests_running_total 3", id="a longer name"),
        pytest.param("vllm:num_requests_running", id="no value"),
        pytest.param("vllm:num_requests_running many", id="no number"),
        pytest.param("vllm:num_requests_running NaN", id="NaN"),
        pytest.param("vllm:num_requests_running +Inf", id="infinite"),
        pytest.param("vllm:num_requests_running -1", id="below zero"),
        pytest.param('vllm:num_requests_running{model="m} 3', id="an open label"),
        pytest.param("# vllm:num_requests_running 3", id="a comment"),
        pytest.param('{"load": 3}', id="JSON"),
    ],
)
def test_what_does_not_tell_is_unknown_and_not_idle(text):
    assert parse_load(text.encode()) is None


def test_gpus_are_told_apart_by_their_label():
    text = """\
gpu_memory_used_bytes{gpu="0"} 1024
gpu_memory_total_bytes{gpu="0"} 4096
gpu_utilization_percent{gpu="0"} 55
gpu_temperature_celsius{gpu="0"} 61.5
gpu_memory_used_bytes{host="n1",gpu="1"} 2048
"""

    assert parse_gpus(text.encode()) == (Gpu("0", 1024, 4096, 55, 61.5), Gpu("1", 2048))


def test_dcgm_names_are_understood_in_its_units():
    text = """\
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-1",modelName="H100"} 100
DCGM_FI_DEV_FB_FREE{gpu="0",UUID="GPU-1"} 300
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1"} 7
DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-1"} 44
DCGM_FI_DEV_FB_USED{gpu="1"} 1
DCGM_FI_DEV_FB_TOTAL{gpu="1"} 2
"""
    mib = 1024 * 1024

    assert parse_gpus(text.encode()) == (
        Gpu("0", 100 * mib, 400 * mib, 7, 44),
        Gpu("1", mib, 2 * mib),
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "gpu_memory_used_bytes 5",
        'gpu_memory_used_bytes{mygpu="0"} 5',
        "gpu_memory_used_bytes{",
    ],
    ids=["nothing", "no label", "another label", "broken"],
)
def test_a_gpu_without_a_label_is_none(text):
    assert parse_gpus(text.encode()) == ()


def test_made_up_gpus_are_bounded_and_known_ones_still_read():
    lines = [f'gpu_memory_used_bytes{{gpu="{n}"}} 1' for n in range(MAX_GPUS + 50)]
    lines.append('gpu_utilization_percent{gpu="0"} 9')

    gpus = parse_gpus("\n".join(lines).encode())

    assert len(gpus) == MAX_GPUS
    assert gpus[0].utilization_percent == 9


@pytest.mark.timeout(60, method="signal")  # a pattern at work lets no thread interrupt it
@pytest.mark.parametrize(
    "line",
    [
        'vllm:num_requests_running{a="' + '\\"' * 400_000,
        "x" * 4_000_000,
    ],
    ids=["an endless label", "one line"],
)
def test_a_hostile_page_is_read_to_its_end(line):
    """A pattern that tries all ways to read it would be at it for ever."""
    assert parse_load(line.encode()) is None


@pytest.mark.parametrize("line", ["a 1\n", "vllm:num_requests_running 1\n"], ids=["none", "all"])
def test_each_further_line_costs_as_much_as_the_one_before(line):
    pages = [line.encode() * count for count in (100, 200, 300)]

    assert grows_evenly([calls(parse_load, page) for page in pages])
