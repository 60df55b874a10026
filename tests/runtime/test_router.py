"""Who may serve and in which order, computed once and kept only as long as it is true."""

import pytest

from llmgw.core.circuit import CircuitKey, DemotionKey
from llmgw.core.circuit import Failed as CircuitFailed
from llmgw.core.config import CircuitsConfig, Config, Pool
from llmgw.core.discovery import Listed, ListingFailed
from llmgw.core.eligibility import Ask, Exclusion
from llmgw.core.fleet import EngineLoad
from llmgw.core.health import ConnectionLost, Failed
from llmgw.core.settle import Changes, Demote
from llmgw.core.types import CLUSTER, AssignmentId, KeyId, RouteClass, Strategy
from llmgw.runtime import router as module
from llmgw.runtime.board import Board
from llmgw.runtime.registry import Registry
from llmgw.runtime.router import Router
from llmgw.runtime.snapshot import build_snapshot
from tests.builders import POOL, account, call, config, node, principal
from tests.fakes.clock import Clock

A, B = node("a"), node("b", 8001)
CHAT = "/v1/chat/completions"


def ask_for(model: str, pool=CLUSTER) -> Ask:
    return Ask(pool=pool, model=model, route=CHAT, lane=RouteClass.HTTP)


class Scene:
    """A router over nodes `a` and `b`, which list nothing yet, unless told otherwise."""

    def __init__(self, made: Config | None = None) -> None:
        self.config = made or config(A, B)
        self.clock, self.wall = Clock(), Clock(5000.0)
        self.registry = Registry(self.config, clock=self.clock)
        self.board = Board(CircuitsConfig(failure_threshold=1, open_for=60.0), wall=self.wall)
        self.router = Router(self.registry, self.board, clock=self.clock, wall=self.wall)
        self.snapshot = build_snapshot(self.config)

    def eligible(self, model: str = "m", pool=CLUSTER):
        return self.router.eligible(self.snapshot, ask_for(model, pool))

    def first(self, model: str = "m", pool=CLUSTER, **headers) -> str:
        """The upstream that a request for the model is sent to first."""
        lines = tuple((name.replace("_", "-"), value) for name, value in headers.items())
        made = call(f'{{"model":"{model}"}}'.encode(), headers=lines)
        eligibility = self.eligible(model, pool)
        plan = self.router.plan(self.snapshot, eligibility, made, principal(pool))
        return plan.candidates[0].upstream.name

    def fails(self, assignment: str, model: str = "m") -> None:
        key = CircuitKey(CLUSTER, AssignmentId(assignment), model, RouteClass.HTTP)
        self.board.apply(Changes(((key, CircuitFailed("upstream_error")),)))

    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.wall.advance(seconds)


@pytest.fixture
def scene():
    return Scene()


class TestKept:
    def test_the_same_answer_is_given_while_nothing_changed(self, scene):
        assert scene.eligible() is scene.eligible()

    def test_each_question_has_its_own(self, scene):
        scene.registry.discovery_event(A, Listed(("m",), 0.0))

        assert [len(scene.eligible(model).candidates) for model in ("m", "other")] == [2, 1]

    @pytest.mark.parametrize(
        "change",
        [
            pytest.param(
                lambda s: s.registry.health_event(A, ConnectionLost(1000.0)), id="health"
            ),
            pytest.param(
                lambda s: s.registry.discovery_event(A, Listed(("x",), 0.0)), id="a list"
            ),
            pytest.param(lambda s: s.fails("cluster/a"), id="a circuit"),
        ],
    )
    def test_a_change_counts_at_once(self, scene, change):
        before = scene.eligible()

        change(scene)

        assert len(before.candidates) == 2
        assert [one.upstream.name for one in scene.eligible().candidates] == ["b"]

    def test_a_reload_counts_at_once(self, scene):
        scene.eligible()
        scene.snapshot = build_snapshot(config(B))

        assert [one.upstream.name for one in scene.eligible().candidates] == ["b"]

    def test_what_time_alone_changes_is_not_kept_longer(self, scene):
        scene.registry.health_event(A, ConnectionLost(scene.clock()))
        assert dict(scene.eligible().reasons) == {"cluster/a": Exclusion.SKIPPED}

        scene.advance(9.9)
        assert len(scene.eligible().candidates) == 1
        scene.advance(0.1)
        assert len(scene.eligible().candidates) == 2

    def test_a_circuit_that_falls_due_lets_its_probe_through(self, scene):
        scene.fails("cluster/a")
        assert scene.eligible().reasons["cluster/a"] is Exclusion.CIRCUIT_OPEN

        scene.advance(60.0)
        assert [one.probe for one in scene.eligible().candidates] == [True, False]

    def test_what_clients_ask_for_is_kept_only_so_far(self, scene, monkeypatch):
        monkeypatch.setattr(module, "MOST_KEPT", 3)
        first = scene.eligible("m0")

        for number in range(1, 4):
            scene.first(f"m{number}")

        assert scene.eligible("m0") is not first
        assert len(scene.router._eligible) <= 3
        assert len(scene.router._turns) <= 3

    def test_a_node_that_is_gone_takes_no_part(self, scene):
        scene.registry.reload(config(B))

        assert [one.upstream.name for one in scene.eligible().candidates] == ["b"]


class TestOrder:
    def test_equals_take_turns(self, scene):
        firsts = [scene.first() for _ in range(6)]

        assert firsts in (["a", "b"] * 3, ["b", "a"] * 3)

    def test_two_models_asked_for_by_turns_reach_both_nodes(self, scene):
        firsts = {"m": set(), "n": set()}

        for model in ("m", "n") * 4:
            firsts[model].add(scene.first(model))

        assert firsts == {"m": {"a", "b"}, "n": {"a", "b"}}

    def test_models_that_are_asked_for_once_do_not_all_reach_the_same_node(self, scene):
        firsts = [scene.first(f"m{number}") for number in range(10)]

        assert firsts.count("a") == firsts.count("b") == 5

    def test_the_same_model_takes_turns_of_its_own_in_each_pool(self):
        both = (Pool(CLUSTER, (A.name, B.name)), Pool(POOL, (A.name, B.name)))
        scene = Scene(Config(nodes=(A, B), pools=both))

        firsts = [scene.first(pool=pool) for pool in (CLUSTER, POOL) * 2]

        assert firsts[0] != firsts[2]
        assert firsts[1] != firsts[3]

    def test_the_least_loaded_comes_first(self):
        pool = Pool(CLUSTER, (A.name, B.name), strategy=Strategy.LEAST_LOAD)
        scene = Scene(Config(nodes=(A, B), pools=(pool,)))
        scene.registry.set_load(A, EngineLoad(3, 0, 0.0))

        assert [scene.first(), scene.first()] == ["b", "b"]

    def test_the_one_whose_success_is_the_oldest_comes_first(self):
        pool = Pool(CLUSTER, (A.name, B.name), strategy=Strategy.LEAST_RECENT_SUCCESS)
        scene = Scene(Config(nodes=(A, B), pools=(pool,)))

        for name in ("a", "b", "a"):
            scene.advance(1.0)
            scene.router.succeeded(AssignmentId(f"cluster/{name}"))

        assert [scene.first(), scene.first()] == ["b", "b"]

    def test_a_session_comes_back_to_where_it_was(self, scene):
        firsts = {scene.first(x_session_id="s1") for _ in range(4)}

        assert len(firsts) == 1

    def test_a_demotion_moves_back_and_leaves_in(self, scene):
        key = DemotionKey(CLUSTER, KeyId("k"), "m", AssignmentId("cluster/a"))
        scene.board.apply(Changes(demotions=(Demote(key, 60.0),)))

        assert [scene.first() for _ in range(4)] == ["b"] * 4
        assert len(scene.eligible().candidates) == 2
        scene.advance(60.0)
        assert {scene.first() for _ in range(4)} == {"a", "b"}


@pytest.mark.parametrize(("cached", "homes"), [(True, 1), (False, 2)])
def test_a_prompt_cache_key_keeps_its_home_unless_the_pool_says_no(cached, homes):
    pool = Pool(CLUSTER, (A.name, B.name), cache_affinity=cached)
    scene = Scene(Config(nodes=(A, B), pools=(pool,)))
    made = call(b'{"model":"m","prompt_cache_key":"c"}')

    plans = [
        scene.router.plan(scene.snapshot, scene.eligible(), made, principal()) for _ in range(4)
    ]

    assert len({plan.candidates[0].assignment for plan in plans}) == homes


class TestCatalog:
    def test_is_the_same_value_until_a_list_changes(self, scene):
        before = scene.router.catalog(scene.snapshot, CLUSTER)
        assert scene.router.catalog(scene.snapshot, CLUSTER) is before

        scene.registry.discovery_event(A, Listed(("x",), 0.0))

        assert scene.router.catalog(scene.snapshot, CLUSTER).knows("x")
        assert not before.knows("x")

    def test_neither_circuits_nor_health_take_a_model_away(self, scene):
        for one in (A, B):
            scene.registry.discovery_event(one, Listed(("m",), 0.0))
        before = scene.router.catalog(scene.snapshot, CLUSTER)

        for one in (A, B):
            scene.fails(f"cluster/{one.name}")
            for _ in range(3):
                scene.registry.health_event(one, Failed(connection=False))

        assert scene.eligible().candidates == ()
        assert scene.router.catalog(scene.snapshot, CLUSTER).entries == before.entries

    def test_a_failed_listing_of_one_changes_no_other(self, scene):
        scene.registry.discovery_event(A, Listed(("x",), 0.0))
        scene.registry.discovery_event(B, Listed(("y",), 0.0))

        scene.registry.discovery_event(A, ListingFailed("no"))

        entries = scene.router.catalog(scene.snapshot, CLUSTER).entries
        assert list(entries) == ["x", "y"]

    def test_each_pool_offers_its_own(self):
        scene = Scene(config(A, account("acct", models=("own",)), models=("named",)))
        scene.registry.discovery_event(A, Listed(("m",), 0.0))

        offered = {
            pool: list(scene.router.catalog(scene.snapshot, pool).entries)
            for pool in (CLUSTER, POOL)
        }

        assert offered == {CLUSTER: ["named", "m"], POOL: ["own"]}


@pytest.mark.parametrize(
    ("model", "status", "code"),
    [
        pytest.param("nobody-knows", 404, "model_not_found", id="neither listed nor configured"),
        pytest.param("named", 503, "no_eligible_backend", id="the configuration names it"),
    ],
)
def test_a_pool_of_accounts_tells_an_unknown_model_from_one_that_nobody_serves_now(
    model, status, code
):
    acct = account("acct")
    scene = Scene(config(acct, models=("named",)))
    scene.registry.discovery_event(acct, Listed(("m",), 0.0))
    eligibility = scene.eligible(model, POOL)
    assert eligibility.candidates == ()

    refused = scene.router.refusal(scene.snapshot, eligibility)

    assert (refused.status, refused.code) == (status, code)
    assert scene.router.knows(scene.snapshot, POOL, model) is (status == 503)
