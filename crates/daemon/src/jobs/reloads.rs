//! Executes the requests `reload` and `confirm` of control clients, and writes their rows. The
//! reload itself is in `crate::reload`. Start reading at [`Context::reload`].

use base::Duration;

use super::{Context, Job, Work};
use crate::client::Steps;
use crate::reload::{self, Report};
use control::reply::{self, Code, Refusal};
use control::request::Reload;

/// The longest time that a reload waits for its confirmation.
const TIMEOUT_S_MAX: f64 = 86_400.0;

/// The rows about a reload, and how many of them are written.
pub(super) struct Reloaded {
    report: Report,
    written: usize,
}

impl Job {
    /// The rest of a reload whose configuration was applied: its rows.
    pub(crate) fn reloaded(id: u64, report: Report) -> Self {
        let rows = Reloaded { report, written: 0 };
        let what = Work::Reloaded(Box::new(rows));
        let name = "reload";
        Self { id, name, what }
    }
}

impl Context<'_> {
    /// Starts to read the configuration again. The client's other requests go on meanwhile.
    pub(super) fn reload(&mut self, id: u64, asked: Reload) -> Result<Option<Work>, Refusal> {
        let timeout = match asked.timeout_s {
            None => None,
            Some(seconds) if (1.0..=TIMEOUT_S_MAX).contains(&seconds) => {
                Some(Duration::from_nanos((seconds * 1e9) as u64))
            }
            Some(seconds) => {
                let message = format!("timeout_s is {seconds}; it must be 1 to {TIMEOUT_S_MAX}");
                return Err(Refusal::new(Code::BadRequest, message));
            }
        };
        reload::on_request(self.core, (self.key, id), timeout)?;
        self.client.wait();
        Ok(None)
    }

    /// Keeps what a reload applied.
    pub(super) fn confirm(&mut self, id: u64) -> Result<Option<Work>, Refusal> {
        reload::confirm(self.core)?;
        reply::done(self.client.out(), id, None);
        Ok(None)
    }

    /// Writes the rows about a reload: one for each key, then the sums.
    pub(super) fn reloaded(
        &mut self,
        id: u64,
        mut rows: Box<Reloaded>,
        steps: &mut Steps,
    ) -> Option<Work> {
        while !self.client.is_full() && steps.next() {
            let Some(change) = rows.report.changes.get(rows.written) else {
                reply::row(self.client.out(), id, &rows.report.summary);
                reply::end(self.client.out(), id, rows.written as u64 + 1);
                return None;
            };
            reply::row(self.client.out(), id, change);
            rows.written += 1;
        }
        Some(Work::Reloaded(rows))
    }
}
