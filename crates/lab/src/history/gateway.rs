//! Chapter 3: the home gateway, where the host that sends most fills the queue.

mod charts;
mod verdict;

use super::{Chapter, Ratio, published};
use crate::gateway::outcome::{Experiment, Outcome, RowOutcome, Setting};
use crate::gateway::report::{experiment_table, fairness_table, rows_table, waits_table};
use crate::gateway::rows::Result;
use crate::report::{Cell, Row, Table};

/// Seconds between two changes of SFQ's hash in the experiment `perturb`.
const PERIOD_S: f64 = 5.0;

/// The chapter on the home gateway, from its rows and from the other experiments.
pub fn chapter_gateway(outcome: &Outcome) -> Chapter {
    let run = Run(outcome);
    let mut tables = vec![rows_table(outcome), with_figures(waits_table(outcome))];
    if !outcome.fairness.is_empty() {
        tables.push(fairness_table(outcome));
    }
    tables.extend(outcome.experiments.iter().map(experiment_table));
    Chapter {
        title: "The home gateway where the host that sends most fills the queue".into(),
        source: published::GATEWAY_SOURCE.into(),
        account: account(),
        charts: charts::charts(&run),
        tables,
        verdict: verdict::verdict(&run),
        old_builds: vec!["FIFO".into()],
        ratio: ratio(&run),
        method: method(),
    }
}

/// The table without empty columns: the model has no browser.
fn with_figures(mut table: Table) -> Table {
    for at in (0..table.columns.len()).rev() {
        let is_empty = |row: &Row| matches!(row.cells.get(at), None | Some(Cell::Missing));
        if table.rows.iter().all(is_empty) {
            table.columns.remove(at);
            for row in table.rows.iter_mut().filter(|row| at < row.cells.len()) {
                row.cells.remove(at);
            }
        }
    }
    table
}

/// The results, with the queries that the chapter needs.
struct Run<'a>(&'a Outcome);

impl<'a> Run<'a> {
    fn row(&self, number: u8) -> Option<&'a RowOutcome> {
        self.0.row(number)
    }

    /// The mean of a row's figure over its measurements.
    fn mean(&self, number: u8, figure: impl Fn(&Result) -> Option<f64>) -> Option<f64> {
        self.row(number)?.mean(figure)
    }

    fn experiment(&self, name: &str) -> Option<&'a Experiment> {
        let named = |one: &&Experiment| one.name == name;
        self.0.experiments.iter().find(named)
    }
}

/// The slowest reply among a setting's streams at each sending time; none if one stream had no
/// reply.
fn slowest(setting: &Setting) -> Vec<(f64, Option<f64>)> {
    let Some((first, others)) = setting.streams.split_first() else {
        return Vec::new();
    };
    let mut slowest = first.pings.clone();
    for stream in others {
        for (one, other) in slowest.iter_mut().zip(&stream.pings) {
            one.1 = one.1.zip(other.1).map(|(a, b)| a.max(b));
        }
    }
    slowest
}

/// B's ping beside uploads without the policy, divided by the same with the policy.
fn ratio(run: &Run<'_>) -> Option<Ratio> {
    let ping = |number| run.mean(number, |run| run.ping_percentile_ms(0.5));
    let ratio = ping(3)? / ping(4)?;
    Ratio::new(
        "B's ping beside uploads",
        ["FIFO", "fair queues"],
        Some(ratio),
    )
}

fn account() -> Vec<String> {
    [
        "Two hosts share a home's slow uplink, and the modem has one deep FIFO queue. A host that keeps sending fills \
         the queue; the packets of all hosts wait in it or are dropped. In six rows, host A is idle, runs three \
         uploads with scp, or floods 8.2 Mbit/s of UDP, each without and with a script in the gateway. Without the \
         script, a stream of 200 kbit/s from host B loses up to 69 %. A page takes 1.5 s instead of half a second, \
         or does not arrive within 120 s. An scp gets a quarter of the link or nothing. The script shapes to just \
         below the link's rate, so that packets queue where they can be managed. It gives each host a share, runs \
         fq_codel within each share, and sends urgent packets first. With the script, nothing is lost, a page takes \
         about as long as on an idle link, and B gets half of the link.",
        "The account has three further findings. A flow classifier that reads only the outer header treats a whole \
         tunnel as one flow, so a ping in the tunnel waits behind an scp in the same tunnel; keys of the inner \
         header solve this. SFQ changes its hash from time to time, and pings spike at some of these changes. \
         pfifo_fast used to read the TOS byte as in RFC 1349, and put packets into its lowest band only because of \
         an ECN bit.",
    ]
    .map(String::from)
    .into()
}

fn method() -> Vec<String> {
    vec![
        "This chapter is computed in virtual time, so it needs no privilege and gives the same result on every \
         machine. Hosts, gateway, modem and far side are a model with its own TCP; the queues are headend's. headend \
         lab home-gateway runs the same experiments in real time, between network namespaces, with the kernel's TCP."
            .into(),
        "The account does not describe its link. The model's FIFO is limited in packets, and the model's link has the \
         rate at which the published flood loses the published share (docs/home-gateway.md). The model's page \
         differs from the published page too: compare rows with each other, not milliseconds with milliseconds."
            .into(),
        "A claim on shares holds if the share is within a quarter of the published share. A claim on jitter or on a \
         page's delay holds if there is a clear difference in the published direction."
            .into(),
        format!(
            "SFQ has 8 buckets and changes its hash every {PERIOD_S} s. In the account, Linux's SFQ had 1,024 buckets \
             and changed its hash every 5 or 20 s. Collisions that are rare in the account appear within seconds \
             here."
        ),
    ]
}

#[cfg(test)]
mod tests;
