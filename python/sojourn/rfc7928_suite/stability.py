"""Sections 8.2.2 to 8.2.6 of RFC 7928: congestion levels and varying capacity."""

from functools import partial

from sojourn.rfc7928_suite import rfc_text
from sojourn.rfc7928_suite.definitions import Definition, Direction
from sojourn.rfc7928_suite.fairness import MILD
from sojourn.rfc7928_suite.topology import (
    SAMPLE_MS,
    Case,
    Form,
    Phases,
    QueueUnderTest,
    bulk,
    dumbbell,
    flows,
    rate,
    seconds,
)
from sojourn.rfc7928_suite.transports import LESS_DELAY, OURS

MEDIUM = 0.081
HEAVY = 0.114
# The capacities of RFC 7928 section 8.2.6, and the short phase.
HIGH_MBIT, LOW_MBIT = 100.0, 10.0
SHORT_PHASE_S = 0.1
LESS_SYNCHRONISED = 'synchronisation["{queue}"] < synchronisation["{tail}"]'
DIRECTIONS = (
    Direction(quotation=rfc_text.AIM, expectation=LESS_DELAY),
    Direction(quotation=rfc_text.SYNCHRONISATION, expectation=LESS_SYNCHRONISED),
)


def _level(tested: QueueUnderTest, form: Form, *, factor: float) -> list[Case]:
    traffic = [bulk("bulk", count=flows(factor))]
    scenario = dumbbell(tested, form, traffic, measured_s=form.steady_s)
    return [Case(scenario=scenario, classes={"bulk": "bulk"})]


def _levels(tested: QueueUnderTest, form: Form) -> list[Case]:
    """Add flows in phases II and III: blocks of flows start and stop with the phases."""
    mild, medium, heavy = (flows(factor) for factor in (MILD, MEDIUM, HEAVY))
    traffic = [bulk("bulk", count=mild)]
    for cycle in range(form.cycles):
        begin = form.warmup_s + 3 * form.phase_s * cycle
        end = seconds(begin + 3 * form.phase_s)
        jitter = seconds(min(1.0, form.phase_s / 4))
        for phase, more in ((1, medium - mild), (2, heavy - medium)):
            start = seconds(begin + phase * form.phase_s)
            name = f"added in phase {'I' * (phase + 1)} of cycle {cycle + 1}"
            traffic.append(bulk(name, count=more, start=start, stop=end, start_jitter=jitter))
    measured_s = 3 * form.phase_s * form.cycles
    scenario = dumbbell(
        tested,
        form,
        traffic,
        measured_s=measured_s,
        sample_ms=min(SAMPLE_MS, form.phase_s * 1e3),
    )
    phases = Phases(names=("I mild", "II medium", "III heavy"), length_s=form.phase_s)
    classes = {str(block.name): "bulk" for block in traffic}
    return [Case(scenario=scenario, classes=classes, phases=phases)]


def _capacity(tested: QueueUnderTest, form: Form, *, short: bool) -> list[Case]:
    phase_s = SHORT_PHASE_S if short else form.phase_s
    measured_s = form.alternating_s if short else 2 * form.phase_s * form.cycles
    changes = [
        {
            "at": seconds(form.warmup_s + number * phase_s),
            "rate": rate(LOW_MBIT if number % 2 else HIGH_MBIT),
        }
        for number in range(1, round(measured_s / phase_s))
    ]
    scenario = dumbbell(
        tested,
        form,
        [bulk("bulk", count=2)],
        measured_s=measured_s,
        rates_mbit=(HIGH_MBIT, HIGH_MBIT),
        sample_ms=min(SAMPLE_MS, phase_s * 1e3),
        changes=changes,
    )
    phases = Phases(names=("I 100 Mbit/s", "II 10 Mbit/s"), length_s=phase_s)
    return [Case(scenario=scenario, classes={"bulk": "bulk"}, phases=phases)]


DEFINITIONS = (
    *(
        Definition(
            number=number,
            title=f"{name} congestion",
            quotation=quotation,
            rfc=f"ROUND({factor} S) long-lived NewReno flows, where S is the sum of the BDP and "
            f"the buffer in packets; drop-tail loss around {loss}",
            suite=f"S = 17 + 45 packets of 750 B: {suite} flows; starts spread over 1 s",
            ours=f"S = 83 + 83 packets: {flows(factor)} flows; {OURS}",
            build=partial(_level, factor=factor),
            directions=DIRECTIONS,
        )
        for number, name, quotation, factor, loss, suite in (
            ("8.2.2", "Mild", rfc_text.MILD, MILD, "0.1 %", "2"),
            ("8.2.3", "Medium", rfc_text.MEDIUM, MEDIUM, "0.5 %", "5"),
            ("8.2.4", "Heavy", rfc_text.HEAVY, HEAVY, "1 %", "7"),
        )
    ),
    Definition(
        number="8.2.5",
        title="Varying congestion level",
        weight="scenario must be considered",
        quotation=rfc_text.LEVELS,
        rfc="phases of 20 s: mild, medium, heavy, repeated",
        suite="the reverse order: heavy, medium, mild",
        ours="flows are added at the start of phases II and III and end with phase III; quick "
        f"form: one cycle; {OURS}",
        build=_levels,
    ),
    Definition(
        number="8.2.6.1",
        title="Varying capacity, long phases",
        weight="scenario must be considered",
        quotation=rfc_text.SLOW_CAPACITY,
        rfc="NewReno flows; 100 and 10 Mbit/s alternate every 20 s",
        suite="2 flows; buffer of 500 packets",
        ours="2 flows; RTT 100 ms; buffer 833 packets, the BDP at 100 Mbit/s; the return path "
        "stays at 100 Mbit/s; quick form: one cycle",
        build=partial(_capacity, short=False),
    ),
    Definition(
        number="8.2.6.2",
        title="Varying capacity, short phases",
        weight="scenario must be considered",
        quotation=rfc_text.FAST_CAPACITY,
        rfc="NewReno flows; 100 and 10 Mbit/s alternate every 100 ms",
        suite="2 flows; buffer of 500 packets",
        ours="2 flows; RTT 100 ms; buffer 833 packets, the BDP at 100 Mbit/s; the return path "
        "stays at 100 Mbit/s; goodput is measured every 100 ms (K = 1)",
        build=partial(_capacity, short=True),
    ),
)
