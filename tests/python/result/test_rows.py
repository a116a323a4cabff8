"""Tables as plain values."""

import pytest

import sojourn as sj
from sojourn import _core
from sojourn.result import rows


def test_plain_values_are_those_of_the_frames() -> None:
    links = {side: sj.Link(rate="2mbit", qdisc="codel") for side in ("up", "down")}
    traffic = [sj.Tcp(direction="up"), sj.Ping(direction="up"), sj.Voip(direction="down")]
    scenario = sj.Scenario(
        links=links, traffic=traffic, rtt="50ms", duration="4s", warmup="1s", replications=2
    )
    outcome = _core.run(scenario.checked)
    result = sj.Result(outcome)
    for name in outcome.table_names:
        assert rows.records(outcome.table(name)) == getattr(result, name).to_dicts()
    for by in ("run", "group", "class", "application", "link"):
        assert result.estimates.table(by) == result.table(by).to_dict(as_series=False)
        assert result.estimates.summary(by) == result.summary(by).to_dicts()
    flows = outcome.table("flows")
    with pytest.raises(IndexError):
        flows.columns(flows.pieces, ["flow"])
    with pytest.raises(KeyError, match="no_column"):
        flows.columns(0, ["no_column"])
