//! What disciplines there are, and what may be set in each: the one place that says so.

mod cake;
mod floq;
mod marking;
mod ns2;
mod parameters;
mod pie_family;
mod predict;
mod schedulers;

use crate::aqm::blue::BlueParams;
use crate::aqm::choke::ChokeParams;
use crate::aqm::cobalt::CobaltParams;
use crate::aqm::codel::CodelParams;
use crate::aqm::droptail::DropTailParams;
use crate::aqm::dualpi2::DualPi2Params;
use crate::aqm::floq::FloqParams;
use crate::aqm::hred::HredParams;
use crate::aqm::pie::PieParams;
use crate::aqm::red::RedParams;
use crate::aqm::red_ns2::Ns2RedParams;
use crate::classful::drr::DrrParams;
use crate::classful::prio::{PfifoFastParams, PrioParams};
use crate::fair::afcd::AfcdParams;
use crate::fair::afd::AfdParams;
use crate::fair::cake::CakeParams;
use crate::fair::cocoa::CocoaParams;
use crate::fair::fq::FqParams;
use crate::fair::fq_codel::FqCodelParams;
use crate::fair::fq_pie::FqPieParams;
use crate::fair::sfb::SfbParams;
use crate::fair::sfq::SfqParams;
use crate::fair::sfq_codel::SfqCodelParams;
use crate::parameters::{Parameter, Profile, Unit};
use crate::registry::QdiscSpec;

use ns2::{HRED, RED_NS2, SFQ_CODEL};
pub(crate) use parameters::PROFILE;
use parameters::{
    AFCD, AFD, ALL_PROFILES, CE_THRESHOLD, COBALT, COCOA, ECN, FQ, FQ_CODEL, INTERVAL, LIMIT,
    LINUX, PIE, RED, SFB, SFQ, TARGET, flag, size,
};
use pie_family::{DUALPI2, FQ_PIE};

use marking::{BLUE, CHOKE};
use schedulers::{DRR, PFIFO_FAST, PRIO};

/// A discipline, as a person choosing one wants to see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QdiscInfo {
    /// The name in a specification.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Where it is specified.
    pub source: &'static str,
    /// What nobody published and we had to supply, in one line; `None`: nothing.
    pub reconstruction: Option<&'static str>,
    /// Whose law it can follow; the first is the default.
    pub profiles: &'static [Profile],
    /// What may be set.
    pub parameters: Vec<ParameterInfo>,
}

/// A parameter of a discipline, as a person setting it wants to see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterInfo {
    /// The name in a specification.
    pub key: &'static str,
    /// What kind of value it takes.
    pub unit: Unit,
    /// The value if none is given, as text.
    pub default: String,
    /// The values allowed, as text.
    pub range: String,
    /// What it means.
    pub meaning: &'static str,
}

/// Every discipline, aliases included, in the order in which to read about them.
pub fn catalogue() -> Vec<QdiscInfo> {
    KINDS.iter().map(Kind::info).collect()
}

/// A name under which a discipline is asked for.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    summary: &'static str,
    source: &'static str,
    pub(crate) reconstruction: Option<&'static str>,
    pub(crate) profiles: &'static [Profile],
    /// The discipline at its defaults under this name.
    pub(crate) start: fn() -> QdiscSpec,
    pub(crate) parameters: &'static [Parameter],
}

impl Kind {
    fn info(&self) -> QdiscInfo {
        let mut start = (self.start)();
        let parameters = self.parameters.iter().map(|parameter| {
            let default = start.field(parameter.key).and_then(|field| field.text());
            ParameterInfo {
                key: parameter.key,
                unit: parameter.unit,
                default: default.unwrap_or_else(|| parameter.unset.into()),
                range: parameter.range(self.profiles),
                meaning: parameter.meaning,
            }
        });
        QdiscInfo {
            name: self.name,
            summary: self.summary,
            source: self.source,
            reconstruction: self.reconstruction,
            profiles: self.profiles,
            parameters: parameters.collect(),
        }
    }
}

const AFCD_RECONSTRUCTION: Option<&str> = Some(
    "the paper gives no sampling rate, no sizes of its tables and no values for equation (5); sizes are those of \
     the first author's module, sampling is scaled to the link, equation (5) is off",
);

const AFD_RECONSTRUCTION: Option<&str> = Some(
    "the sources give no target backlog, no size of the shadow buffer and no sampling rate; a fifth of the limit and \
     2000 samples are the AFQ module's, sampling is scaled to the link; the module's arithmetic is signed here",
);

pub(crate) const KINDS: &[Kind] = &[
    Kind {
        name: "pfifo",
        summary: "A FIFO that holds so many packets and drops what does not fit",
        source: "Linux 6.1 sch_fifo",
        reconstruction: None,
        profiles: LINUX,
        start: || QdiscSpec::DropTail(DropTailParams::PFIFO),
        parameters: &[LIMIT, CE_THRESHOLD],
    },
    Kind {
        name: "bfifo",
        summary: "A FIFO that holds so many bytes and drops what does not fit",
        source: "Linux 6.1 sch_fifo",
        reconstruction: None,
        profiles: LINUX,
        start: || QdiscSpec::DropTail(DropTailParams::BFIFO),
        parameters: &[
            size("limit", 1, 1 << 32, "", "bytes the buffer holds"),
            flag("headdrop", "make room by dropping the oldest packet"),
            CE_THRESHOLD,
        ],
    },
    Kind {
        name: "pfifo_head_drop",
        summary: "A FIFO that makes room by dropping its oldest packet",
        source: "Linux 6.1 sch_fifo",
        reconstruction: None,
        profiles: LINUX,
        start: || QdiscSpec::DropTail(DropTailParams::PFIFO_HEAD_DROP),
        parameters: &[LIMIT, CE_THRESHOLD],
    },
    Kind {
        name: "red",
        summary: "Signals at random as the average backlog grows",
        source: "Linux 6.1 sch_red, iproute2; Floyd and Jacobson 1993",
        reconstruction: None,
        profiles: LINUX,
        start: || QdiscSpec::Red(RedParams::default()),
        parameters: RED,
    },
    Kind {
        name: "ared",
        summary: "red adaptive: the probability follows the load",
        source: "Linux 6.1 sch_red, iproute2; Floyd, Gummadi and Shenker 2001",
        reconstruction: None,
        profiles: LINUX,
        start: || QdiscSpec::Red(RedParams::adaptive()),
        parameters: RED,
    },
    Kind {
        name: "choke",
        summary: "red that drops an arrival and a queued packet drawn at random if of one flow",
        source: "Linux 6.1 sch_choke, iproute2; Pan, Prabhakar and Psounis 2000",
        reconstruction: None,
        profiles: LINUX,
        start: || QdiscSpec::Choke(ChokeParams::default()),
        parameters: CHOKE,
    },
    Kind {
        name: "blue",
        summary: "Signals with a probability that losses raise and idle times lower (reconstructed)",
        source: "Feng, Shin, Kandlur and Saha 2002, as later works quote it",
        reconstruction: Some("how often an idle link lowers the probability; see its page"),
        profiles: &[Profile::Rfc],
        start: || QdiscSpec::Blue(BlueParams::default()),
        parameters: BLUE,
    },
    Kind {
        name: "red_ns2",
        summary: "red as ns-2 has it: any weight, gentle, idle time as samples",
        source: "ns-2 red.cc, ns-default.tcl; Floyd and Jacobson 1993, Floyd 2000",
        reconstruction: None,
        profiles: &[Profile::Rfc],
        start: || QdiscSpec::Ns2Red(Ns2RedParams::default()),
        parameters: RED_NS2,
    },
    Kind {
        name: "nlred",
        summary: "red_ns2 nonlinear: the probability rises as a square",
        source: "ns-3 red-queue-disc, after Zhou, Yeung and Li 2006",
        reconstruction: None,
        profiles: &[Profile::Rfc],
        start: || QdiscSpec::Ns2Red(Ns2RedParams::nonlinear()),
        parameters: RED_NS2,
    },
    Kind {
        name: "hred",
        summary: "Harsh RED: red_ns2 tuned to react within one round trip (reconstructed)",
        source: "Järvinen et al. 2012; Järvinen and Kojo 2014",
        reconstruction: Some(
            "weight, thresholds and probability were not in what could be read; derived from what HRED is for",
        ),
        profiles: &[Profile::Rfc],
        start: || QdiscSpec::Hred(HredParams::default()),
        parameters: HRED,
    },
    Kind {
        name: "codel",
        summary: "Signals when the delay has stood above a target for an interval",
        source: "RFC 8289; Linux 6.1 sch_codel",
        reconstruction: None,
        profiles: &[Profile::Rfc, Profile::Linux],
        start: || QdiscSpec::Codel(CodelParams::default()),
        parameters: &[LIMIT, TARGET, INTERVAL, CE_THRESHOLD, ECN, PROFILE],
    },
    Kind {
        name: "pie",
        summary: "Signals with a probability that holds the delay at a target",
        source: "RFC 8033; Linux 6.1 and 3.14 sch_pie",
        reconstruction: None,
        profiles: ALL_PROFILES,
        start: || QdiscSpec::Pie(PieParams::default()),
        parameters: PIE,
    },
    Kind {
        name: "dualpi2",
        summary: "Two coupled queues, one of very low delay for L4S",
        source: "RFC 9332; Linux 6.18 sch_dualpi2, iproute2",
        reconstruction: None,
        profiles: &[Profile::Rfc, Profile::Linux],
        start: || QdiscSpec::DualPi2(DualPi2Params::default()),
        parameters: DUALPI2,
    },
    Kind {
        name: "fq_codel",
        summary: "A queue per flow, sparse flows first, CoDel in each",
        source: "RFC 8290; Linux 6.1 and 3.14 sch_fq_codel",
        reconstruction: None,
        profiles: ALL_PROFILES,
        start: || QdiscSpec::FqCodel(FqCodelParams::default()),
        parameters: FQ_CODEL,
    },
    Kind {
        name: "fq_nocodel",
        summary: "fq_codel whose CoDel never signals: fair queueing alone",
        source: "Linux 6.1 sch_fq_codel with target 100s",
        reconstruction: None,
        profiles: ALL_PROFILES,
        start: || QdiscSpec::FqCodel(FqCodelParams::without_codel()),
        parameters: FQ_CODEL,
    },
    Kind {
        name: "fq_pie",
        summary: "A queue per flow, sparse flows first, PIE in each",
        source: "Linux 6.1 sch_fq_pie",
        reconstruction: None,
        profiles: LINUX,
        start: || QdiscSpec::FqPie(FqPieParams::default()),
        parameters: FQ_PIE,
    },
    Kind {
        name: "sfq",
        summary: "Flows hashed to slots that take turns",
        source: "Linux 6.1 sch_sfq; McKenney 1990",
        reconstruction: None,
        profiles: LINUX,
        start: || QdiscSpec::Sfq(SfqParams::default()),
        parameters: SFQ,
    },
    Kind {
        name: "sfq_codel",
        summary: "Bins that take turns packet by packet, CoDel of 2013 in each",
        source: "Nichols' sfqcodel.cc for ns-2, 2013",
        reconstruction: None,
        profiles: &[Profile::Rfc],
        start: || QdiscSpec::SfqCodel(SfqCodelParams::default()),
        parameters: SFQ_CODEL,
    },
    Kind {
        name: "fq",
        summary: "A queue per flow with a limit of its own, flows that come back first",
        source: "Linux 6.1 sch_fq",
        reconstruction: None,
        profiles: LINUX,
        start: || QdiscSpec::Fq(FqParams::default()),
        parameters: FQ,
    },
    Kind {
        name: "drr",
        summary: "Classes that take turns by bytes, any queue in each",
        source: "Linux 6.1 sch_drr and cls_flow; Shreedhar and Varghese 1995",
        reconstruction: None,
        profiles: LINUX,
        start: || QdiscSpec::Drr(DrrParams::default()),
        parameters: DRR,
    },
    Kind {
        name: "prio",
        summary: "Bands in strict order, any queue in each",
        source: "Linux 6.1 sch_prio",
        reconstruction: None,
        profiles: LINUX,
        start: || QdiscSpec::Prio(PrioParams::default()),
        parameters: PRIO,
    },
    Kind {
        name: "pfifo_fast",
        summary: "Three FIFOs in strict order, chosen by DSCP",
        source: "Linux 6.1 and 3.14 sch_generic",
        reconstruction: None,
        profiles: &[Profile::Linux, Profile::Linux314],
        start: || QdiscSpec::PfifoFast(PfifoFastParams::default()),
        parameters: PFIFO_FAST,
    },
    Kind {
        name: "cocoa",
        summary: "fq whose limit for a flow follows what its congestion control needs",
        source: "Bachl, Zseby and Fabini 2019; their module for Linux 4.19",
        reconstruction: None,
        profiles: &[Profile::Rfc, Profile::Linux],
        start: || QdiscSpec::Cocoa(CocoaParams::default()),
        parameters: COCOA,
    },
    Kind {
        name: "sfb",
        summary: "Signals each flow with the least probability of its bins",
        source: "Linux 6.1 sch_sfb, iproute2; Feng, Kandlur, Saha and Shin 1999",
        reconstruction: None,
        profiles: LINUX,
        start: || QdiscSpec::Sfb(SfbParams::default()),
        parameters: SFB,
    },
    Kind {
        name: "cake",
        summary: "A shaper, classes, fair shares of hosts and flows, COBALT in each",
        source: "Linux 6.1 sch_cake, iproute2; Høiland-Jørgensen, Täht and Morton 2018",
        reconstruction: None,
        profiles: LINUX,
        start: || QdiscSpec::Cake(CakeParams::default()),
        parameters: cake::CAKE,
    },
    Kind {
        name: "cobalt",
        summary: "CoDel for delay and BLUE for a full buffer, in one FIFO",
        source: "Linux 6.1 sch_cake",
        reconstruction: None,
        profiles: LINUX,
        start: || QdiscSpec::Cobalt(CobaltParams::default()),
        parameters: COBALT,
    },
    Kind {
        name: "afcd",
        summary: "CoDel with a target for each flow that falls with its share (reconstructed)",
        source: "Xue, Kumar, Cui, Kondikoppa, Chiu and Park, ICCCN 2013",
        reconstruction: AFCD_RECONSTRUCTION,
        profiles: &[Profile::Rfc],
        start: || QdiscSpec::Afcd(AfcdParams::default()),
        parameters: AFCD,
    },
    Kind {
        name: "afcd_kernel2012",
        summary: "afcd as its first author's module: slow flows spared, fast ones have 50 µs (reconstructed)",
        source: "the first author's module of 2012 for Linux 3.6",
        reconstruction: AFCD_RECONSTRUCTION,
        profiles: LINUX,
        start: || QdiscSpec::Afcd(AfcdParams::kernel2012()),
        parameters: AFCD,
    },
    Kind {
        name: "afd",
        summary: "Drops of each flow what it sends beyond a fair share that holds the backlog (reconstructed)",
        source: "Pan, Breslau, Prabhakar and Shenker, CCR 33(2), 2003, as later works cite it",
        reconstruction: AFD_RECONSTRUCTION,
        profiles: &[Profile::Rfc],
        start: || QdiscSpec::Afd(AfdParams::default()),
        parameters: AFD,
    },
    Kind {
        name: "afq_kernel2012",
        summary: "afd as the AFQ module of 2012: a thousandth of its drops (reconstructed)",
        source: "the AFQ module of 2012 that AFCD was compared with, for Linux 3.6",
        reconstruction: AFD_RECONSTRUCTION,
        profiles: LINUX,
        start: || QdiscSpec::Afd(AfdParams::afq_kernel2012()),
        parameters: AFD,
    },
    Kind {
        name: "afq",
        summary: "another name of afq_kernel2012 (reconstructed)",
        source: "the AFQ module of 2012 that AFCD was compared with, for Linux 3.6",
        reconstruction: AFD_RECONSTRUCTION,
        profiles: LINUX,
        start: || QdiscSpec::Afd(AfdParams::afq_kernel2012()),
        parameters: AFD,
    },
    floq::kind(
        "floq",
        "Spares connections being set up, signals others by class and its share (reconstructed)",
        || QdiscSpec::Floq(FloqParams::default()),
    ),
    floq::kind(
        "floq_share",
        "floq under the name of its preset (reconstructed)",
        || QdiscSpec::Floq(FloqParams::default()),
    ),
    floq::kind(
        "floq_fixed",
        "floq that signals unresponsive traffic five times as often (reconstructed)",
        || QdiscSpec::Floq(FloqParams::fixed()),
    ),
    floq::kind(
        "floq_protect",
        "floq that treats all packets but those of a set-up alike (reconstructed)",
        || QdiscSpec::Floq(FloqParams::protect()),
    ),
    predict::PREDICT,
];
