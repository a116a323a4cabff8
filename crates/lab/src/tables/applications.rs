//! Applications and what their users waited for.

use arrow_array::RecordBatch;
use sojourn_apps::{PlayerRecord, Transaction};
use sojourn_net::Instant;
use sojourn_records::AppRecord;

use super::flow::kind_name;
use super::rows::Cell;
use super::voice::Voice;
use crate::stats::{mean, quantile_of_sorted};

/// How long it took, in seconds; `None`: it was not whole within the run.
fn duration_s(transaction: &Transaction) -> Option<f64> {
    let completed = transaction.completed?;
    let took = completed.saturating_since(transaction.started);
    Some(took.as_secs_f64())
}

pub(super) fn transactions(cell: Cell<'_>) -> RecordBatch {
    let rows = &cell.records.transactions;
    let flow = |t: &Transaction| &cell.records.flows[t.flow as usize];
    let group = |t: &Transaction| cell.plan.flows[t.flow as usize].group.as_str();
    cell.columns(rows.len())
        .text("flow", rows.iter().map(|t| flow(t).name.as_str()))
        .text("group", rows.iter().map(group))
        .text("kind", rows.iter().map(|t| kind_name(flow(t).kind)))
        .real("started_s", rows.iter().map(|t| t.started.as_secs_f64()))
        .optional_real(
            "completed_s",
            rows.iter().map(|t| t.completed.map(Instant::as_secs_f64)),
        )
        .optional_real("duration_s", rows.iter().map(duration_s))
        .count("bytes", rows.iter().map(|t| t.bytes))
        .finish()
}

/// Mean bit rate of the segments fetched.
#[expect(clippy::cast_precision_loss, reason = "exact below 2^53 bit/s")]
fn bitrate(player: &PlayerRecord) -> Option<f64> {
    let any = player.segments > 0;
    any.then(|| player.bits_per_s_sum as f64 / player.segments as f64 / 1e6)
}

/// One row of `applications`.
struct Row<'a> {
    record: &'a AppRecord,
    /// Of the transactions that began after the warm-up.
    begun: u64,
    whole: u64,
    durations: Vec<f64>,
}

pub(super) fn applications(cell: Cell<'_>) -> RecordBatch {
    let warm = Instant::ZERO + cell.config().measure_from;
    let mut rows: Vec<Row<'_>> = Vec::new();
    let mut places = vec![None; cell.records.flows.len()];
    for record in &cell.records.apps {
        places[record.flow as usize] = Some(rows.len());
        rows.push(Row {
            record,
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
    let flow = |r: &Row<'_>| &cell.records.flows[r.record.flow as usize];
    let label = |r: &Row<'_>| &cell.plan.flows[r.record.flow as usize];
    let voices = || rows.iter().map(|r| r.record.call.as_ref().map(Voice::of));
    let tests = || rows.iter().map(|r| r.record.responsiveness);
    let players = || rows.iter().map(|r| r.record.player);
    cell.columns(rows.len())
        .text("flow", rows.iter().map(|r| flow(r).name.as_str()))
        .text("group", rows.iter().map(|r| label(r).group.as_str()))
        .text("kind", rows.iter().map(|r| kind_name(flow(r).kind)))
        .count("connections", rows.iter().map(|r| r.record.connections))
        .count("failed", rows.iter().map(|r| r.record.failed))
        .count("handshake_hit", rows.iter().map(|r| r.record.handshake_hit))
        .count("initial_hit", rows.iter().map(|r| r.record.initial_hit))
        .count("transactions", rows.iter().map(|r| r.begun))
        .count("completed", rows.iter().map(|r| r.whole))
        .optional_real("duration_s_mean", rows.iter().map(|r| mean(&r.durations)))
        .optional_real(
            "duration_s_p50",
            rows.iter().map(|r| quantile_of_sorted(&r.durations, 0.5)),
        )
        .optional_real(
            "duration_s_p95",
            rows.iter().map(|r| quantile_of_sorted(&r.durations, 0.95)),
        )
        .optional_real(
            "startup_s",
            players().map(|p| Some(p?.startup?.as_secs_f64())),
        )
        .optional_count("stalls", players().map(|p| Some(p?.stalls.into())))
        .optional_real(
            "stalled_s",
            players().map(|p| Some(p?.stalled.as_secs_f64())),
        )
        .optional_real("bitrate_mbit_per_s_mean", players().map(|p| bitrate(&p?)))
        .optional_count("switches", players().map(|p| Some(p?.switches)))
        .optional_real("mos", voices().map(|v| v?.mos))
        .optional_real("mouth_to_ear_ms", voices().map(|v| v?.delay_ms))
        .optional_real("voice_loss_percent", voices().map(|v| v?.loss_percent))
        .optional_count("loss_runs", voices().map(|v| Some(v?.runs)))
        .optional_count(
            "loss_run_packets_max",
            voices().map(|v| Some(v?.longest_run)),
        )
        .optional_real("loss_interval_packets_mean", voices().map(|v| v?.interval))
        .optional_real("rpm", tests().map(|t| Some(t?.times.rpm())))
        .optional_real("foreign_rpm", tests().map(|t| Some(t?.times.foreign_rpm())))
        .optional_real("loaded_rpm", tests().map(|t| Some(t?.times.loaded_rpm())))
        .optional_text(
            "rpm_confidence",
            tests().map(|t| Some(t?.confidence.name())),
        )
        .optional_real("rpm_at_s", tests().map(|t| Some(t?.at.as_secs_f64())))
        .optional_count("rpm_probes", tests().map(|t| Some(t?.probes)))
        .optional_real(
            "tcp_handshake_ms",
            tests().map(|t| Some(t?.times.tcp.as_millis_f64())),
        )
        .optional_real(
            "tls_handshake_ms",
            tests().map(|t| Some(t?.times.tls?.as_millis_f64())),
        )
        .optional_real(
            "http_foreign_ms",
            tests().map(|t| Some(t?.times.http.as_millis_f64())),
        )
        .optional_real(
            "http_loaded_ms",
            tests().map(|t| Some(t?.times.own.as_millis_f64())),
        )
        .finish()
}
