"""Quotations from RFC 7928 that the suite uses, each stored once.

The text is that of the RFC, with spaces instead of line breaks. The IETF Trust and the authors of
RFC 7928 hold the copyright of the text.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Quotation:
    """A passage of RFC 7928."""

    section: str
    text: str


AIM = Quotation(
    "1",
    "AQM schemes aim at reducing buffer occupancy, and therefore the end-to-end delay.",
)
BASELINE = Quotation(
    "1.2",
    "the guidelines can be used to compare several AQM proposals with each other, but should be "
    "used to compare a proposal with drop-tail.",
)
SYNCHRONISATION = Quotation(
    "2.4",
    "One goal of an AQM algorithm is to help to avoid global synchronization of flows sharing a "
    "bottleneck buffer on which the AQM operates",
)
MARKING = Quotation(
    "2.5",
    "marking packets instead of dropping them reduces the number of packet retransmissions and "
    "increases goodput.",
)
GRAPH = Quotation(
    "2.7",
    "the x-axis shows a queuing delay (that is, the average per-packet delay in excess of minimum "
    "RTT), the y-axis the goodput.",
)
BUFFER = Quotation(
    "3.2",
    "While comparing AQM schemes, the buffer size should remain the same across the tests.",
)
SIZES = Quotation(
    "4.4",
    "should not provide undue advantage to flows with smaller packets",
)
ECN = Quotation(
    "4.5",
    "the AQM's ECN support can be studied and verified by replicating tests in Section 6.2 with "
    "ECN turned ON at the TCP senders.",
)
SCHEDULING = Quotation(
    "4.6",
    "It can be explained whether the dropping policy is applied when packets are being enqueued "
    "or dequeued.",
)
SEEK = Quotation("5", "In these cases, AQM schemes seek to control the queuing delay.")
SAME_WINDOW = Quotation(
    "5.1.1",
    "A single, long-lived, non-application-limited, TCP NewReno flow, with an Initial congestion "
    "Window (IW) set to 3 packets, transfers data between sender A and receiver B.",
)
OTHER_WINDOW = Quotation(
    "5.1.2",
    "The size of the data transferred must be strictly higher than 10 packets and should be lower "
    "than 100 packets.",
)
AGGRESSIVE = Quotation(
    "5.2",
    "A single long-lived, non-application-limited, CUBIC flow transfers data between sender A and "
    "receiver B.",
)
OVERLOAD = Quotation(
    "5.3",
    "It considers unresponsive flow(s) whose sending rate is greater than the bottleneck link "
    "capacity between routers L and R.",
)
MIXED = Quotation(
    "5.3",
    "the rate of the UDP traffic should not be greater than the bottleneck capacity, and should "
    "be higher than half of the bottleneck capacity.",
)
LESS_THAN_BEST_EFFORT = Quotation(
    "5.4",
    'LBE congestion control that "results in smaller bandwidth and/or delay impact on standard '
    'TCP than standard TCP itself, when sharing a bottleneck with it"',
)
LEDBAT = Quotation(
    "5.4",
    "We recommend setting the target delay and gain values of LEDBAT to 5 ms and 10, respectively",
)
RTTS = Quotation(
    "6.2",
    "Category I whose RTT between sender A and receiver B should be 100 ms. Category II, in which "
    "the RTT between sender A and receiver B should be in the range [5 ms, 560 ms] inclusive.",
)
BURSTS = Quotation(
    "7.2",
    "Each web page could be composed of at least 50 objects and the size of each object should be "
    "at least 1 KB.",
)
MILD = Quotation("8.2.2", "N_mild = ROUND (0.036*S)")
MEDIUM = Quotation("8.2.3", "N_med = ROUND (0.081*S)")
HEAVY = Quotation("8.2.4", "N_heavy = ROUND (0.114*S)")
LEVELS = Quotation(
    "8.2.5",
    "phase I -- mild congestion during 0-20 s; phase II -- medium congestion during 20-40 s; "
    "phase III -- heavy congestion during 40-60 s; phase I again, and so on.",
)
SLOW_CAPACITY = Quotation(
    "8.2.6",
    "phase I -- 100 Mbps during 0-20 s; phase II -- 10 Mbps during 20-40 s; phase I again, and so "
    "on.",
)
FAST_CAPACITY = Quotation(
    "8.2.6",
    "phase I -- 100 Mbps during 0-100 ms; phase II -- 10 Mbps during 100-200 ms; phase I again, "
    "and so on.",
)
SENSITIVITY = Quotation(
    "8.3",
    "AQM proposals should provide background material showing theoretical analysis of the AQM "
    "control law and the input parameter space within which the control law operates, or they "
    "should use another way to discuss the stability of the control law.",
)
MIX = Quotation(
    "9.1",
    "1 bidirectional VoIP; 6 web page downloads (such as those detailed in Section 7.2); 1 CBR; "
    "1 Adaptive Video; 5 bulk TCP.",
)
BIDIRECTIONAL = Quotation(
    "9.2",
    "These guidelines recommend considering a mild congestion level and the traffic presented in "
    "Section 8.2.2 in both directions.",
)
SEVERAL = Quotation(
    "10.2",
    "could be (I) same scheme with identical parameter values, (ii) same scheme with different "
    "parameter values, or (iii) two different schemes.",
)
COST = Quotation(
    "11.1",
    "This helps to identify costs associated with implementing the AQM scheme on a particular "
    "hardware or software device.",
)
TUNING = Quotation(
    "12.1",
    "A scheme ought to expose only those parameters that control the macroscopic AQM behavior "
    "such as queue delay threshold, queue length threshold, etc.",
)

ALL = tuple(value for value in list(globals().values()) if isinstance(value, Quotation))
