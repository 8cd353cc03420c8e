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

/// B's ping beside uploads without the policy against with it.
fn ratio(run: &Run<'_>) -> Option<Ratio> {
    let ping = |number| run.mean(number, |run| run.ping_percentile_ms(0.5));
    let ratio = ping(3)? / ping(4)?;
    Ratio::new("B's ping beside uploads: FIFO by fair queues", Some(ratio))
}

fn account() -> Vec<String> {
    [
        "Two hosts share a home's slow uplink, and the modem has one deep queue, first in, first out. A host that keeps \
         sending fills it, and the packets of all hosts wait in it or are dropped. In six rows host A does nothing, \
         uploads three times with scp, or floods 8.2 Mbit/s of UDP, each without and with a script in the gateway; at \
         host B a stream of 200 kbit/s loses up to 69 %, a page takes 1.5 s in place of half a second or does not come \
         within 120 s, and an scp gets a quarter of the link or nothing. The script shapes to just below the link's \
         rate, so that packets queue where they can be managed, gives each host a share, has fq_codel below that, and \
         sends first what cannot wait: nothing is lost then, a page takes about what it does on an idle link, and B \
         gets half.",
        "Three further findings of the account are of queues that do not see what they should. A flow classifier that \
         reads the outer header alone takes a whole tunnel for one flow, so that a ping in it waits behind the scp in \
         it; keys of the inner header mend that. SFQ, whose hash changes from time to time, spikes when it does, though \
         not each time. And pfifo_fast, where it read the TOS octet as RFC 1349 has it, put packets into its lowest \
         band for nothing but an ECN bit.",
    ]
    .map(String::from)
    .into()
}

fn method() -> Vec<String> {
    vec![
        "All of this chapter is computed in virtual time, so that it needs no privilege and comes out the same on every \
         machine: hosts, gateway, modem and far side are a model, with a TCP of its own, and the queues are those of \
         headend. headend lab home-gateway does the same between network namespaces, with the kernel's TCP, in real time."
            .into(),
        "The published link is not told. The model's FIFO is limited in packets, and its rate is the one at which the \
         published flood loses the published share (docs/home-gateway.md). Its page is not the published one either: \
         compare rows with each other, not milliseconds with milliseconds."
            .into(),
        "A claim on shares holds within a quarter of what was published, one on jitter or on a page's delay when the \
         difference is there and goes the same way."
            .into(),
        format!(
            "SFQ has 8 buckets and changes its hash every {PERIOD_S} s, where Linux has 1,024 and was asked to change it \
             every 5 or 20 s: what is rare there is seen within seconds here."
        ),
    ]
}

#[cfg(test)]
mod tests;
