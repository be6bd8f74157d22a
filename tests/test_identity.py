"""What makes the identity of a plan: what is run, and nothing that is shown or judged."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from qjump_mn.model import identity, loading, resolve
from qjump_mn.model.plan import Plan, Run, Trial
from qjump_mn.programs import registry

ROOT = Path(loading.__file__).parents[2]

NOT_RUN = {
    "ArmPlan": {"label", "series", "x"},
    "SchemePlan": {"name", "only_simulated"},
    "Network": {"topology"},
}
"""The fields of what is run that only name things; of every workload it is its label."""


@pytest.fixture(autouse=True)
def examples(monkeypatch: pytest.MonkeyPatch) -> None:
    """What no experiment of ours has is in an example: the program "command", a cable that fails."""
    monkeypatch.setenv("QJUMP_MN_PATH", str(ROOT / "examples"))


def fig3a(**options: Any) -> Plan:
    return resolve.plan("fig3a", "smoke", [], **options)


def plans() -> Iterator[Plan]:
    """Every program, limiter, scheme and kind of network is in some of them."""
    for name in loading.names("experiments"):
        yield resolve.plan(name, "smoke" if "smoke" in loading.presets(name) else "course", [])
    yield resolve.plan("fig3b", "memaslap", [])
    yield resolve.plan("fig3a", "paper", ["clock.wakeup=2us", "link.tolerance=200ppm"])
    yield fig3a(only=["idle", "contended"], perturb=2)
    yield resolve.plan("fig3a", "smoke", ["topology=two-ways"])


def other(value: Any) -> Any:
    """Another value in the place of a plain one, an empty one, or none."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return f"{value}x"
        case (*_, msgspec.Struct()):
            return value[:-1]
        case tuple() | list():
            return (*value, "x")
        case dict():
            return {**value, "x": 1}
        case None:
            return 1
    raise AssertionError(f"no other value than {value!r}")


def changes(value: Any) -> Iterator[tuple[str, Any]]:
    """``value`` with each field of each struct in it changed in turn, by the field's "Class.name"."""
    match value:
        case msgspec.Struct():
            for name in value.__struct_fields__:
                field = getattr(value, name)
                if not isinstance(field, msgspec.Struct):
                    yield (
                        f"{type(value).__name__}.{name}",
                        msgspec.structs.replace(value, **{name: other(field)}),
                    )
                for place, changed in changes(field):
                    yield place, msgspec.structs.replace(value, **{name: changed})
        case tuple():
            for index, entry in enumerate(value):
                for place, changed in changes(entry):
                    yield place, (*value[:index], changed, *value[index + 1 :])
        case dict():
            for key, entry in value.items():
                for place, changed in changes(entry):
                    yield place, {**value, key: changed}


def structs(kind: msgspec.inspect.Type) -> Iterator[type[msgspec.Struct]]:
    """Every struct that a value of this type may hold."""
    match kind:
        case msgspec.inspect.StructType():
            yield kind.cls
            for field in kind.fields:
                yield from structs(field.type)
        case msgspec.inspect.UnionType():
            for one in kind.types:
                yield from structs(one)
        case msgspec.inspect.VarTupleType() | msgspec.inspect.ListType():
            yield from structs(kind.item_type)
        case msgspec.inspect.DictType():
            yield from structs(kind.value_type)
        case msgspec.inspect.CustomType() if kind.cls is registry.AnyPlan:
            for name in registry.OURS:
                yield from structs(msgspec.inspect.type_info(registry.program(name).plan))


RUN_STRUCTS = {cls.__name__: cls for cls in structs(msgspec.inspect.type_info(Run))}


def not_run(place: str) -> bool:
    struct, _, field = place.partition(".")
    return field in getattr(RUN_STRUCTS[struct], "NOT_RUN", ())


def test_every_field_that_is_run_makes_another_hash_and_a_name_does_not() -> None:
    tried: set[str] = set()
    for plan in plans():
        for place, changed in changes(plan.run):
            if place not in tried:
                tried.add(place)
                same = msgspec.structs.replace(plan, run=changed).hash == plan.hash
                assert same == not_run(place), f"{place} of {plan.experiment}"
    nested = {"ArmPlan.network", "ArmPlan.scheme", "ArmPlan.tcp", "Network.link", "Network.trunk"}
    every = {f"{name}.{field}" for name, cls in RUN_STRUCTS.items() for field in cls.__struct_fields__}
    assert every - nested <= tried, f"no experiment has {every - nested - tried}"


def test_only_names_are_left_out() -> None:
    for name, cls in RUN_STRUCTS.items():
        named = set(getattr(cls, "NOT_RUN", ()))
        assert named == NOT_RUN.get(name, {"label"} if "flows" in cls.__struct_fields__ else set()), name
        assert named <= set(cls.__struct_fields__), name


@pytest.mark.parametrize("part", ["shown", "judged"])
def test_no_field_that_is_shown_or_judged_makes_another_hash(part: str) -> None:
    tried: set[str] = set()
    for plan in (
        fig3a(only=["idle", "qjump"]),
        resolve.plan("fig6", "smoke", []),
        resolve.plan("fig7", "smoke", []),
    ):
        before = plan.hash, [trial.hash for trial in plan.trials()]
        for place, changed in changes(getattr(plan, part)):
            tried.add(place)
            now = msgspec.structs.replace(plan, **{part: changed})
            assert (now.hash, [trial.hash for trial in now.trials()]) == before, place
    assert {"shown": {"Look.colour", "FigureSpec.arms"}, "judged": {"ClaimSpec.predicate", "ArmPlan.name"}}[
        part
    ] <= tried


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder with Figure 3a's experiment and QJump's scheme."""
    for name in ("experiments/fig3a.toml", "schemes/qjump.toml", "topologies/paper12.toml"):
        path = tmp_path / name
        path.parent.mkdir()
        shutil.copy(ROOT / name, path)
    monkeypatch.setenv("QJUMP_MN_PATH", str(tmp_path))
    return tmp_path


WORDS = [
    ("experiments/fig3a.toml", 'title = "', 'title = "Another title: '),
    ("experiments/fig3a.toml", 'question = "', 'question = "Another question: '),
    ("experiments/fig3a.toml", 'label = "ping alone"', 'label = "only a ping"'),
    ("experiments/fig3a.toml", 'statement = "', 'statement = "It was said that '),
    ("experiments/fig3a.toml", 'predicate = "', 'predicate = "1 < 2 and '),
    ("experiments/fig3a.toml", 'about = "', 'about = "Another preset: '),
    ("experiments/fig3a.toml", "remarks = [", 'remarks = ["Another remark.", '),
    ("experiments/fig3a.toml", 'detail = ["', 'detail = ["contended", "'),
    ("schemes/qjump.toml", 'about = "', 'about = "Another scheme: '),
    ("schemes/qjump.toml", 'colour = "#00', 'colour = "#11'),
]


@pytest.mark.parametrize(("file", "old", "new"), WORDS, ids=[old for _, old, _ in WORDS])
def test_other_words_in_a_file_are_the_same_run(file: str, old: str, new: str, folder: Path) -> None:
    text = (folder / file).read_text()
    assert old in text
    before = fig3a(), loading.presets("fig3a")
    (folder / file).write_text(text.replace(old, new))
    after = fig3a(), loading.presets("fig3a")
    assert after != before
    assert after[0].hash == before[0].hash


def test_another_name_of_experiment_or_topology_is_the_same_run(folder: Path) -> None:
    before = fig3a()
    text = (folder / "experiments/fig3a.toml").read_text()
    shutil.copy(folder / "topologies/paper12.toml", folder / "topologies/mine.toml")
    (folder / "experiments/mine.toml").write_text(text.replace('topology = "paper12"', 'topology = "mine"'))
    after = resolve.plan("mine", "smoke", [])
    assert (after.experiment, after.network.topology) == ("mine", "mine")
    assert after.hash == before.hash


def test_the_order_of_arms_is_the_same_run_and_fewer_arms_are_another() -> None:
    plan = fig3a()
    turned = msgspec.structs.replace(plan.run, arms=plan.run.arms[::-1])
    assert msgspec.structs.replace(plan, run=turned).hash == plan.hash
    few = fig3a(only=["qjump", "idle"])
    assert few.hash != plan.hash
    assert [arm.name for arm in few.arms_run] == ["idle", "qjump"]
    assert sorted(arm.name for arm in few.arms) == sorted(arm.name for arm in plan.arms)
    hashes = {trial.name: trial.hash for trial in plan.trials()}
    assert {trial.name: trial.hash for trial in few.trials()}.items() < hashes.items()
    assert len(set(hashes.values())) == len(hashes)


def test_a_trials_hash_is_of_its_arm_its_seed_and_its_times() -> None:
    trial = fig3a().trials()[0]
    assert {place for place, changed in changes(trial) if changed.hash == trial.hash} == {
        "ArmPlan.label", "ArmPlan.series", "ArmPlan.x", "Network.topology",
        "PingPlan.label", "SchemePlan.name", "SchemePlan.only_simulated",
        "Trial.perturbation",
    }  # fmt: skip


def test_numbers_have_one_form() -> None:
    assert identity.canonical({"a": 12.0, "b": [-0.0, 0.5, True, 1e300]}) == {
        "a": 12,
        "b": [0, 0.5, True, 1e300],
    }
    assert identity.sha256((12.0, 0.5)) == identity.sha256([12, 0.5]) != identity.sha256([True, 0.5])
    for plan in plans():
        text = msgspec.json.encode(plan)
        assert msgspec.json.decode(text, type=Plan, dec_hook=registry.decode).hash == plan.hash, (
            plan.experiment
        )
        # JSON that other programs write may have 12 for 12.0.
        plain = _integers(msgspec.json.decode(text))
        assert msgspec.convert(plain, Plan, dec_hook=registry.decode).hash == plan.hash, plan.experiment


def _integers(value: Any) -> Any:
    """Every integral float as the integer."""
    match value:
        case float() if value.is_integer():
            return int(value)
        case list():
            return [_integers(entry) for entry in value]
        case dict():
            return {key: _integers(entry) for key, entry in value.items()}
    return value


def test_a_feature_that_is_not_used_leaves_a_hash_as_it_was() -> None:
    class Before(msgspec.Struct):
        rate: int
        extra: tuple[int, ...] = ()

    class After(msgspec.Struct):
        rate: int
        feature: int | None = None

    assert identity.sha256(Before(5)) == identity.sha256(After(5)) != identity.sha256(After(5, 0))


def test_json_of_explain_is_the_plan() -> None:
    argv = [
        sys.executable,
        "-m",
        "qjump_mn.run",
        "explain",
        "fig3a",
        "-p",
        "smoke",
        "-s",
        "link.rate=20Mbit",
        "--json",
    ]
    printed = subprocess.run(argv, capture_output=True, check=True, cwd=ROOT)
    assert printed.stderr == b""
    plain = msgspec.json.decode(printed.stdout)
    assert list(plain) == ["run", "shown", "judged"]
    plan = msgspec.convert(plain, Plan, dec_hook=registry.decode)
    assert plan == resolve.plan("fig3a", "smoke", ["link.rate=20Mbit"])
    assert all(
        isinstance(trial, Trial) and trial.network.link.rate_bps == 20_000_000 for trial in plan.trials()
    )
