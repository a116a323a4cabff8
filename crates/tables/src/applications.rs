//! The tables `transactions` and `applications`.
//!
//! # Voice quality
//!
//! The E-model of ITU-T G.107, for the impairments that a network causes:
//!
//! ```text
//! R     = 93.2 - Id - Ie,eff                          all else at G.107's defaults
//! Id    = 0.024 d + 0.11 max(0, d - 177.3)            d: mouth to ear, in ms
//! Ie,eff = Ie + (95 - Ie) Ppl / (Ppl / BurstR + Bpl)  Ppl: loss in percent
//! MOS   = 1 + 0.035 R + R (R - 60) (100 - R) 7e-6     1 below R = 0, 4.5 above 100
//! ```
//!
//! `Id` is the approximation of Cole and Rosenbluth, "Voice over IP Performance Monitoring" (CCR 2001).
//! For G.711 with packet loss concealment G.113 Appendix I gives Ie = 0 and Bpl = 25.1. `BurstR` is
//! the mean length of a run of losses over what it would be were they independent, 1 / (1 - p). A call of
//! which nothing arrived has MOS 1.

use sojourn_apps::{CallRecord, MediaRecord, PlayerRecord, Transaction};
use sojourn_net::{Duration, Instant};
use sojourn_records::{AppRecord, Column, FlowRecord, Get};
use sojourn_scenario::FlowLabel;

use super::{Cell, Frame, flow_columns};
use crate::quantiles::{mean, quantile_of_sorted};

/// How long it took, in seconds; `None`: it was not whole within the run.
fn duration_s(transaction: &Transaction) -> Option<f64> {
    let completed = transaction.completed?;
    let took = completed.saturating_since(transaction.started);
    Some(took.as_secs_f64())
}

/// One row of `transactions`.
pub(super) struct TransactionRow<'a> {
    transaction: &'a Transaction,
    flow: &'a FlowRecord,
    label: &'a FlowLabel,
}

pub(super) fn transaction_columns<'a>() -> Vec<Column<TransactionRow<'a>>> {
    let mut columns = flow_columns(
        |row: &TransactionRow<'_>| &row.flow.name,
        |row| &row.label.group,
    );
    columns.extend([
        Column::new(
            "kind",
            "",
            "Type of the application, such as web, whose transactions are pages.",
            Get::Text(|row: &TransactionRow<'_>| row.label.kind),
        ),
        Column::new(
            "started_s",
            "s",
            "Time at which the transaction began.",
            Get::Real(|row| row.transaction.started.as_secs_f64()),
        ),
        Column::new(
            "completed_s",
            "s",
            "Time at which the transaction completed; null if it did not complete within the run.",
            Get::OptionalReal(|row| row.transaction.completed.map(Instant::as_secs_f64)),
        ),
        Column::new(
            "duration_s",
            "s",
            "Time from the start of the transaction to its completion.",
            Get::OptionalReal(|row| duration_s(row.transaction)),
        ),
        Column::new(
            "bytes",
            "B",
            "Total size of the responses.",
            Get::Count(|row| row.transaction.bytes),
        ),
    ]);
    columns
}

pub(super) fn transactions<F: Frame>(cell: Cell<'_>) -> F {
    let rows: Vec<_> = cell
        .records
        .transactions
        .iter()
        .map(|transaction| TransactionRow {
            transaction,
            flow: &cell.records.flows[transaction.flow as usize],
            label: &cell.plan.flows[transaction.flow as usize],
        })
        .collect();
    F::of(cell, &rows, &transaction_columns())
}

/// Mean bit rate of the segments fetched.
#[expect(clippy::cast_precision_loss, reason = "exact below 2^53 bit/s")]
fn bitrate(player: &PlayerRecord) -> Option<f64> {
    let any = player.segments > 0;
    any.then(|| player.bits_per_s_sum as f64 / player.segments as f64 / 1e6)
}

/// One row of `applications`.
pub(super) struct Row<'a> {
    record: &'a AppRecord,
    flow: &'a FlowRecord,
    label: &'a FlowLabel,
    voice: Option<Voice>,
    /// Of the transactions that began after the warm-up.
    begun: u64,
    whole: u64,
    durations: Vec<f64>,
}

pub(super) fn applications<F: Frame>(cell: Cell<'_>) -> F {
    let warm = Instant::ZERO + cell.config().measure_from;
    let mut rows: Vec<Row<'_>> = Vec::new();
    let mut places = vec![None; cell.records.flows.len()];
    for record in &cell.records.apps {
        places[record.flow as usize] = Some(rows.len());
        let flow = record.flow as usize;
        rows.push(Row {
            record,
            flow: &cell.records.flows[flow],
            label: &cell.plan.flows[flow],
            voice: record.call.as_ref().map(Voice::of),
            begun: 0,
            whole: 0,
            durations: Vec::new(),
        });
    }
    for transaction in &cell.records.transactions {
        if let Some(place) = places[transaction.flow as usize]
            && transaction.started >= warm
        {
            let row = &mut rows[place];
            row.begun += 1;
            row.whole += u64::from(transaction.completed.is_some());
            row.durations.extend(duration_s(transaction));
        }
    }
    for row in &mut rows {
        row.durations.sort_by(f64::total_cmp);
    }
    F::of(cell, &rows, &application_columns())
}

pub(super) fn application_columns<'a>() -> Vec<Column<Row<'a>>> {
    let mut columns = transfers();
    columns.extend(video());
    columns.extend(voice());
    columns.extend(media());
    columns.extend(responsiveness());
    columns
}

/// Connections and transactions.
fn transfers<'a>() -> Vec<Column<Row<'a>>> {
    let mut columns = flow_columns(|row: &Row<'_>| &row.flow.name, |row| &row.label.group);
    columns.extend([
        Column::new(
            "kind",
            "",
            "Type of the application.",
            Get::Text(|row: &Row<'_>| row.label.kind),
        ),
        Column::new(
            "connections",
            "",
            "Connections opened in the whole run, warm-up included.",
            Get::Count(|row| row.record.connections),
        ),
        Column::new(
            "failed",
            "",
            "Connections that failed in the whole run, warm-up included.",
            Get::Count(|row| row.record.failed),
        ),
        Column::new(
            "handshake_hit",
            "",
            "Connections that lost a handshake packet, in the whole run.",
            Get::Count(|row| row.record.handshake_hit),
        ),
        Column::new(
            "initial_hit",
            "",
            "Connections that lost a handshake packet or a segment of the server's initial window, in the whole run.",
            Get::Count(|row| row.record.initial_hit),
        ),
        Column::new(
            "transactions",
            "",
            "Transactions that began after the warm-up.",
            Get::Count(|row| row.begun),
        ),
        Column::new(
            "completed",
            "",
            "Transactions that began after the warm-up and completed within the run.",
            Get::Count(|row| row.whole),
        ),
        Column::new(
            "duration_s_mean",
            "s",
            "Mean duration of the completed transactions.",
            Get::OptionalReal(|row| mean(&row.durations)),
        ),
        Column::new(
            "duration_s_p50",
            "s",
            "Median duration of the completed transactions.",
            Get::OptionalReal(|row| quantile_of_sorted(&row.durations, 0.5)),
        ),
        Column::new(
            "duration_s_p95",
            "s",
            "95th percentile of the duration of the completed transactions.",
            Get::OptionalReal(|row| quantile_of_sorted(&row.durations, 0.95)),
        ),
    ]);
    columns
}

/// What a video player did.
fn video<'a>() -> Vec<Column<Row<'a>>> {
    vec![
        Column::new(
            "startup_s",
            "s",
            "dash: time from the request for the first segment to the start of playback.",
            Get::OptionalReal(|row: &Row<'_>| Some(row.record.player?.startup?.as_secs_f64())),
        ),
        Column::new(
            "stalls",
            "",
            "dash: number of playback interruptions after startup.",
            Get::OptionalCount(|row| Some(row.record.player?.stalls.into())),
        ),
        Column::new(
            "stalled_s",
            "s",
            "dash: total duration of the playback interruptions.",
            Get::OptionalReal(|row| Some(row.record.player?.stalled.as_secs_f64())),
        ),
        Column::new(
            "bitrate_mbit_per_s_mean",
            "Mbit/s",
            "dash: mean bit rate of the segments fetched.",
            Get::OptionalReal(|row| bitrate(&row.record.player?)),
        ),
        Column::new(
            "switches",
            "",
            "dash: number of segments whose quality differs from that of the previous segment.",
            Get::OptionalCount(|row| Some(row.record.player?.switches)),
        ),
    ]
}

/// How a call sounded.
fn voice<'a>() -> Vec<Column<Row<'a>>> {
    vec![
        Column::new(
            "mos",
            "",
            "voip: mean opinion score (E-model), 1 to 4.5.",
            Get::OptionalReal(|row: &Row<'_>| row.voice?.mos),
        ),
        Column::new(
            "mouth_to_ear_ms",
            "ms",
            "voip: mean mouth-to-ear delay.",
            Get::OptionalReal(|row| row.voice?.delay_ms),
        ),
        Column::new(
            "voice_loss_percent",
            "%",
            "voip: share of packets that were lost or late.",
            Get::OptionalReal(|row| row.voice?.loss_percent),
        ),
        Column::new(
            "loss_runs",
            "",
            "voip: number of loss periods (RFC 3357), sequences of consecutive packets that were lost \
             or late.",
            Get::OptionalCount(|row| Some(row.voice?.runs)),
        ),
        Column::new(
            "loss_run_packets_max",
            "packets",
            "voip: length of the longest loss period.",
            Get::OptionalCount(|row| Some(row.voice?.longest_run)),
        ),
        Column::new(
            "loss_interval_packets_mean",
            "packets",
            "voip: packets sent per loss period.",
            Get::OptionalReal(|row| row.voice?.interval),
        ),
    ]
}

/// What a media flow sent and its receiver got.
fn media<'a>() -> Vec<Column<Row<'a>>> {
    vec![
        Column::new(
            "frames",
            "",
            "media: frames that the encoder produced after the warm-up.",
            Get::OptionalCount(|row: &Row<'_>| Some(row.record.media?.frames)),
        ),
        Column::new(
            "lost_frames_percent",
            "%",
            "media: share of the frames up to the last complete one that lost a packet.",
            Get::OptionalReal(|row| lost_frames(&row.record.media?)),
        ),
        Column::new(
            "frame_delay_ms_mean",
            "ms",
            "media: mean time from the encoder to the arrival of the last packet of a frame.",
            Get::OptionalReal(|row| ms(row.record.media?.frame_delay_mean)),
        ),
        Column::new(
            "frame_delay_ms_p95",
            "ms",
            "media: 95th percentile of this time.",
            Get::OptionalReal(|row| ms(row.record.media?.frame_delay_p95)),
        ),
        Column::new(
            "frame_delay_ms_max",
            "ms",
            "media: maximum of this time.",
            Get::OptionalReal(|row| ms(row.record.media?.frame_delay_max)),
        ),
        Column::new(
            "sender_delay_ms_mean",
            "ms",
            "media: mean time that packets waited at the sender for the pacer and the window.",
            Get::OptionalReal(|row| sender_delay(&row.record.media?)),
        ),
        Column::new(
            "target_mbit_per_s_mean",
            "Mbit/s",
            "media: mean target bit rate of the encoder, over the frames.",
            Get::OptionalReal(|row| {
                row.record
                    .media?
                    .target_kbit_per_s
                    .map(|kbit| real(kbit) / 1e3)
            }),
        ),
        Column::new(
            "sent_bytes",
            "B",
            "media: size of the RTP packets sent after the warm-up.",
            Get::OptionalCount(|row| Some(row.record.media?.sent_bytes)),
        ),
        Column::new(
            "marked_packets",
            "packets",
            "media: packets that arrived with a CE mark after the warm-up.",
            Get::OptionalCount(|row| Some(row.record.media?.marked)),
        ),
        Column::new(
            "feedback_packets",
            "packets",
            "media: reports that the receiver sent after the warm-up.",
            Get::OptionalCount(|row| Some(row.record.media?.reports)),
        ),
        Column::new(
            "feedback_bytes",
            "B",
            "media: size of these reports, without UDP headers.",
            Get::OptionalCount(|row| Some(row.record.media?.report_bytes)),
        ),
    ]
}

fn ms(time: Option<Duration>) -> Option<f64> {
    time.map(Duration::as_millis_f64)
}

fn lost_frames(media: &MediaRecord) -> Option<f64> {
    (media.frames > 0).then(|| 100.0 * real(media.lost_frames) / real(media.frames))
}

fn sender_delay(media: &MediaRecord) -> Option<f64> {
    let any = media.sent_packets > 0;
    any.then(|| media.waited.as_millis_f64() / real(media.sent_packets))
}

#[expect(clippy::cast_precision_loss, reason = "exact below 2^53")]
const fn real(n: u64) -> f64 {
    n as f64
}

/// What a test of responsiveness found.
fn responsiveness<'a>() -> Vec<Column<Row<'a>>> {
    vec![
        Column::new(
            "rpm",
            "1/min",
            "responsiveness: mean of `foreign_rpm` and `loaded_rpm`.",
            Get::OptionalReal(|row: &Row<'_>| Some(row.record.responsiveness?.times.rpm())),
        ),
        Column::new(
            "foreign_rpm",
            "1/min",
            "responsiveness: round trips per minute of probes on separate connections.",
            Get::OptionalReal(|row| Some(row.record.responsiveness?.times.foreign_rpm())),
        ),
        Column::new(
            "loaded_rpm",
            "1/min",
            "responsiveness: round trips per minute of probes on load-generating connections.",
            Get::OptionalReal(|row| Some(row.record.responsiveness?.times.loaded_rpm())),
        ),
        Column::new(
            "rpm_confidence",
            "",
            "responsiveness: confidence in the result: low, medium or high.",
            Get::OptionalText(|row| Some(row.record.responsiveness?.confidence.name())),
        ),
        Column::new(
            "rpm_at_s",
            "s",
            "responsiveness: time at which the result was computed.",
            Get::OptionalReal(|row| Some(row.record.responsiveness?.at.as_secs_f64())),
        ),
        Column::new(
            "rpm_probes",
            "",
            "responsiveness: number of probes that the result includes.",
            Get::OptionalCount(|row| Some(row.record.responsiveness?.probes)),
        ),
        Column::new(
            "tcp_handshake_ms",
            "ms",
            "responsiveness: trimmed mean duration of the TCP handshakes.",
            Get::OptionalReal(|row| Some(row.record.responsiveness?.times.tcp.as_millis_f64())),
        ),
        Column::new(
            "tls_handshake_ms",
            "ms",
            "responsiveness: trimmed mean duration of the TLS handshakes.",
            Get::OptionalReal(|row| Some(row.record.responsiveness?.times.tls?.as_millis_f64())),
        ),
        Column::new(
            "http_foreign_ms",
            "ms",
            "responsiveness: trimmed mean duration of the requests on separate connections.",
            Get::OptionalReal(|row| Some(row.record.responsiveness?.times.http.as_millis_f64())),
        ),
        Column::new(
            "http_loaded_ms",
            "ms",
            "responsiveness: trimmed mean duration of the requests on load-generating connections.",
            Get::OptionalReal(|row| Some(row.record.responsiveness?.times.own.as_millis_f64())),
        ),
    ]
}

const BEST: f64 = 93.2;
const IE: f64 = 0.0;
const BPL: f64 = 25.1;

/// Quality of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Voice {
    pub(super) mos: Option<f64>,
    pub(super) delay_ms: Option<f64>,
    /// Packets that the listener did not get, in percent of those spoken.
    pub(super) loss_percent: Option<f64>,
    pub(super) runs: u64,
    pub(super) longest_run: u64,
    /// Packets sent per loss period (RFC 3357).
    pub(super) interval: Option<f64>,
}

impl Voice {
    #[expect(clippy::cast_precision_loss, reason = "a call has few packets")]
    pub(super) fn of(call: &CallRecord) -> Self {
        let missing = (call.lost + call.late) as f64;
        let (spoken, runs) = (call.spoken as f64, call.runs as f64);
        let share = (call.spoken > 0).then(|| missing / spoken);
        let delay_ms = call.delay.map(sojourn_net::Duration::as_millis_f64);
        let burst = share.map_or(1.0, |p| {
            let mean_run = if runs > 0.0 { missing / runs } else { 1.0 };
            (mean_run * (1.0 - p)).max(1.0)
        });
        Self {
            // Of silence the model says nothing: it is the worst there is.
            mos: share.map(|p| match delay_ms {
                Some(delay) if p < 1.0 => mos(rating(delay, 100.0 * p, burst)),
                _ => 1.0,
            }),
            delay_ms,
            loss_percent: share.map(|p| 100.0 * p),
            runs: call.runs,
            longest_run: call.longest_run,
            interval: (call.runs > 0).then(|| spoken / runs),
        }
    }
}

fn rating(delay_ms: f64, loss_percent: f64, burst: f64) -> f64 {
    let delay = 0.024 * delay_ms + 0.11 * (delay_ms - 177.3).max(0.0);
    let loss = IE + (95.0 - IE) * loss_percent / (loss_percent / burst + BPL);
    BEST - delay - loss
}

fn mos(r: f64) -> f64 {
    match r {
        r if r <= 0.0 => 1.0,
        r if r >= 100.0 => 4.5,
        r => (1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6).max(1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_net::Duration;

    fn call(delay_ms: u64, lost: u64, runs: u64) -> f64 {
        let call = CallRecord {
            spoken: 1_000,
            lost,
            late: 0,
            runs,
            longest_run: 1,
            delay: Some(Duration::from_millis(delay_ms)),
        };
        Voice::of(&call).mos.unwrap()
    }

    #[test]
    fn mos_follows_its_cubic() {
        // 93.2, with everything at its default, is the best there is: 4.41. The others by hand.
        for (r, wanted) in [(93.2, 4.409), (80.0, 4.024), (70.0, 3.597), (50.0, 2.575)] {
            let got = mos(r);
            assert!((got - wanted).abs() < 0.001, "R {r}: {got}");
        }
        assert!((mos(-5.0) - 1.0).abs() < 1e-12 && (mos(101.0) - 4.5).abs() < 1e-12);
    }

    #[test]
    fn delay_and_loss_take_from_it() {
        // 100 ms: Id 2.4. 300 ms: 7.2 + 13.5. 2 % of single losses: 95 * 2 / 27.1 = 7.0.
        let near = |got: f64, r: f64| assert!((got - mos(r)).abs() < 0.01, "{got} {}", mos(r));
        near(call(100, 0, 0), 90.8);
        near(call(300, 0, 0), 72.5);
        near(call(100, 20, 20), 83.8);
        // In runs of ten they take more: 95 * 2 / (2 / 9.8 + 25.1) = 7.51.
        near(call(100, 20, 2), 83.29);
    }

    #[test]
    fn a_call_of_which_nothing_arrived_is_rated_worst() {
        let silent = CallRecord {
            spoken: 500,
            lost: 500,
            runs: 1,
            longest_run: 500,
            ..CallRecord::default()
        };
        let voice = Voice::of(&silent);
        assert_eq!((voice.mos, voice.loss_percent), (Some(1.0), Some(100.0)));
        assert_eq!(voice.delay_ms, None);
    }

    #[test]
    fn a_call_of_which_nothing_is_known_has_no_rating() {
        let voice = Voice::of(&CallRecord::default());
        assert!(voice.mos.is_none() && voice.loss_percent.is_none() && voice.interval.is_none());
    }
}
