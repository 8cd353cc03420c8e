//! Creates tunnels through a control socket as the published benchmark does: it watches the rate, and slows down when
//! the daemon falls behind.
#![allow(
    missing_docs,
    reason = "the fields are the flags of `headend tunnel create`"
)]

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::pace::Pace;
use crate::client::{Client, refusal};
use crate::net::Net;
use crate::request::{Do, TunnelCreate, Wait};

/// Tunnels to create.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    pub peer: SocketAddr,
    pub version: u8,
    pub count: u32,
    pub from: Option<Net>,
    pub session: bool,
    pub wait: Wait,
    /// Time limit of the whole creation.
    pub timeout: Option<Duration>,
}

/// The result of a creation.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Tunnels that are up, or started if the request does not wait.
    pub done: u32,
    pub failed: u32,
    /// Reasons of failures, with their counts.
    pub reasons: BTreeMap<String, u32>,
    pub took: Duration,
    /// Each one's time to come up, in milliseconds, sorted.
    pub ms: Vec<f64>,
    /// Local id of the tunnel, and of the session, that was done last.
    pub last: Option<(u32, Option<u32>)>,
}

impl Outcome {
    /// Completions per second.
    pub fn rate(&self) -> f64 {
        f64::from(self.done) / self.took.as_secs_f64().max(1e-9)
    }

    /// The time within which `part` (0 to 1) of them came up, in milliseconds.
    pub fn quantile_ms(&self, part: f64) -> f64 {
        let last = self.ms.len().saturating_sub(1);
        self.ms
            .get((last as f64 * part).round() as usize)
            .copied()
            .unwrap_or(0.0)
    }

    fn fail(&mut self, count: u32, reason: &str) {
        self.failed += count;
        if let Some(known) = self.reasons.get_mut(reason) {
            *known += count;
        } else if self.reasons.len() < 16 {
            self.reasons.insert(reason.into(), count);
        }
    }
}

/// Creates the tunnels; calls `progress` with the number finished so far.
///
/// # Errors
/// The control connection failed, or time ran out.
pub fn create(
    client: &mut Client,
    wanted: &Wanted,
    mut progress: impl FnMut(u32),
) -> Result<Outcome> {
    let started = Instant::now();
    let mut run = Run {
        pace: Pace::default(),
        asked: 0,
        open: HashMap::new(),
        outcome: Outcome::default(),
    };
    while run.finished() < wanted.count {
        run.refill(client, wanted)?;
        let left = wanted
            .timeout
            .map(|limit| limit.saturating_sub(started.elapsed()));
        if left == Some(Duration::ZERO) {
            let (done, failed) = (run.outcome.done, run.outcome.failed);
            bail!(
                "time ran out with {done} of {} up and {failed} failed; the daemon continues those in progress",
                wanted.count
            );
        }
        run.take(client, left, started)?;
        progress(run.finished());
    }
    run.outcome.took = started.elapsed();
    run.outcome.ms.sort_by(f64::total_cmp);
    Ok(run.outcome)
}

struct Run {
    pace: Pace,
    asked: u32,
    /// Requests in progress, with the number of unfinished creations of each.
    open: HashMap<u64, u32>,
    outcome: Outcome,
}

impl Run {
    fn finished(&self) -> u32 {
        self.outcome.done + self.outcome.failed
    }

    fn refill(&mut self, client: &mut Client, wanted: &Wanted) -> Result<()> {
        let room = self.pace.allowance(self.asked - self.finished());
        let count = room.min(wanted.count - self.asked);
        if count == 0 {
            return Ok(());
        }
        let id = client.queue(&Do::TunnelCreate(TunnelCreate {
            peer: wanted.peer,
            version: wanted.version,
            count,
            from: wanted.from,
            skip: u64::from(self.asked),
            session: wanted.session,
            wait: wanted.wait,
        }));
        self.asked += count;
        self.open.insert(id, count);
        client.flush()
    }

    /// Waits for a line, then reads all pending lines.
    fn take(
        &mut self,
        client: &mut Client,
        limit: Option<Duration>,
        started: Instant,
    ) -> Result<()> {
        let mut next = client.next(limit)?;
        let at = started.elapsed();
        while let Some(reply) = next {
            if let Some(tunnel) = reply.tunnel {
                let up = reply.up.unwrap_or(true);
                if up {
                    self.outcome.done += 1;
                    self.outcome.ms.extend(reply.ms);
                    self.outcome.last = Some((tunnel, reply.session));
                } else {
                    self.outcome
                        .fail(1, reply.reason.as_deref().unwrap_or("no reason given"));
                }
                if let Some(left) = self.open.get_mut(&reply.id) {
                    *left = left.saturating_sub(1);
                }
                self.pace.completed(up, at);
            } else if let Some(reason) = refusal(&reply) {
                // Creations that were already started still report.
                let left = self.open.remove(&reply.id).unwrap_or(0);
                self.outcome.fail(left, &reason);
                for _ in 0..left {
                    self.pace.completed(false, at);
                }
            } else if reply.end {
                self.open.remove(&reply.id);
            }
            next = client.next_buffered()?;
        }
        Ok(())
    }
}
