//! The event loop: its rows, and the rates of its handlers and threads.

use std::time::Duration;

use crate::rows::{self, Handler, LoopRows};

/// The rows of the event loop.
#[derive(Debug, Default)]
pub(crate) struct EventLoop {
    pub(crate) rows: LoopRows,
    /// By handler, the busiest first: its share of the time, and calls per second.
    pub(crate) handlers: Vec<(Handler, Option<f64>, Option<f64>)>,
    pub(crate) shards: Vec<Shard>,
    at: Option<Duration>,
}

/// A thread that forwards packets, with its rates.
#[derive(Debug)]
pub(crate) struct Shard {
    pub(crate) number: u32,
    pub(crate) busy: Option<f64>,
    pub(crate) packets_in: Option<f64>,
    pub(crate) packets_out: Option<f64>,
    pub(crate) discarded: Option<f64>,
    pub(crate) left: Option<f64>,
}

impl EventLoop {
    /// Takes a reading.
    pub(super) fn take(&mut self, rows: LoopRows, at: Duration) {
        let span = self
            .at
            .map(|before| at.saturating_sub(before).as_secs_f64());
        let span = span.filter(|span| *span > 0.0);
        let known = &self.rows.handlers;
        let with_rates = |now: &Handler| {
            let before = known.iter().find(|before| before.name == now.name);
            // A daemon that has restarted counts from 0.
            let before = before.filter(|before| before.calls <= now.calls).zip(span);
            let share =
                before.map(|(before, span)| (now.total_us - before.total_us).max(0.0) / 1e6 / span);
            let calls = before.map(|(before, span)| (now.calls - before.calls) as f64 / span);
            (now.clone(), share, calls)
        };
        self.handlers = rows.handlers.iter().map(with_rates).collect();
        self.handlers.sort_by(|a, b| {
            let share = b.1.unwrap_or(0.0).total_cmp(&a.1.unwrap_or(0.0));
            share.then(b.0.total_us.total_cmp(&a.0.total_us))
        });
        let known = &self.rows.shards;
        self.shards = rows
            .shards
            .iter()
            .map(|now| shard(now, known, span))
            .collect();
        self.rows = rows;
        self.at = Some(at);
    }
}

fn shard(now: &rows::Shard, known: &[rows::Shard], span: Option<f64>) -> Shard {
    let before = known
        .iter()
        .find(|before| before.shard == now.shard)
        .zip(span);
    let rate = |counter: fn(&rows::Shard) -> u64| {
        let (before, span) = before?;
        Some(counter(now).checked_sub(counter(before))? as f64 / span)
    };
    Shard {
        number: now.shard,
        busy: before.map(|(before, span)| (now.cpu_s - before.cpu_s).max(0.0) / span),
        packets_in: rate(|row| row.packets_in),
        packets_out: rate(|row| row.packets_out),
        discarded: rate(|row| row.discarded),
        left: rate(|row| row.left),
    }
}
