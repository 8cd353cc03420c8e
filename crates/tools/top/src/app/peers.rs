//! BGP peers: rates of messages, order, filter and selection.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use super::subscribers::step;
use crate::list::{Cursor, Move};
use crate::rows::{Neighbor, PeerRows, Summary};

/// A column to sort by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeerOrder {
    Address,
    State,
    Since,
    Prefixes,
    Messages,
}

impl PeerOrder {
    const ALL: [PeerOrder; 5] = [
        PeerOrder::Address,
        PeerOrder::State,
        PeerOrder::Since,
        PeerOrder::Prefixes,
        PeerOrder::Messages,
    ];

    /// The name in the status line.
    pub(crate) fn title(self) -> &'static str {
        match self {
            PeerOrder::Address => "address",
            PeerOrder::State => "state",
            PeerOrder::Since => "up/down",
            PeerOrder::Prefixes => "prefixes",
            PeerOrder::Messages => "messages",
        }
    }
}

/// A peer with its rates of messages.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) row: Neighbor,
    pub(crate) rate_in: Option<f64>,
    pub(crate) rate_out: Option<f64>,
}

/// BGP peers.
#[derive(Debug)]
pub(crate) struct Peers {
    pub(crate) summary: Summary,
    rows: Vec<Peer>,
    shown: Vec<usize>,
    keys: Vec<String>,
    at: Option<Duration>,
    filter: String,
    pub(crate) order: PeerOrder,
    pub(crate) is_reversed: bool,
    pub(crate) cursor: Cursor<String>,
}

impl Peers {
    /// No peers, and a filter.
    pub(crate) fn new(filter: &str) -> Self {
        Self {
            summary: Summary::default(),
            rows: Vec::new(),
            shown: Vec::new(),
            keys: Vec::new(),
            at: None,
            filter: filter.to_owned(),
            order: PeerOrder::Address,
            is_reversed: false,
            cursor: Cursor::default(),
        }
    }

    /// Takes a reading.
    pub(super) fn take(&mut self, rows: PeerRows, at: Duration) {
        let span = self
            .at
            .map(|before| at.saturating_sub(before).as_secs_f64());
        let before: HashMap<&str, &Neighbor> = self
            .rows
            .iter()
            .map(|peer| (peer.row.address.as_str(), &peer.row))
            .collect();
        let with_rates = |row: Neighbor| {
            let known = before.get(row.address.as_str());
            let rate = |counter: fn(&Neighbor) -> u64| {
                let rise = counter(&row).checked_sub(counter(known?))?;
                span.filter(|span| *span > 0.0)
                    .map(|span| rise as f64 / span)
            };
            Peer {
                rate_in: rate(|row| row.messages_in),
                rate_out: rate(|row| row.messages_out),
                row,
            }
        };
        self.rows = rows.neighbors.into_iter().map(with_rates).collect();
        self.summary = rows.summary;
        self.at = Some(at);
        self.arrange();
    }

    fn arrange(&mut self) {
        let rows = &self.rows;
        let matches = |peer: &Peer| {
            let row = &peer.row;
            let texts = [
                row.address.as_str(),
                row.state.as_str(),
                row.name.as_deref().unwrap_or(""),
            ];
            texts.iter().any(|text| text.contains(&self.filter))
        };
        self.shown = (0..rows.len()).filter(|&i| matches(&rows[i])).collect();
        let (order, is_reversed) = (self.order, self.is_reversed);
        self.shown.sort_by(|&a, &b| {
            let by = compare(order, &rows[a], &rows[b]);
            let by = if is_reversed { by.reverse() } else { by };
            by.then_with(|| compare(PeerOrder::Address, &rows[a], &rows[b]))
        });
        self.keys = self
            .shown
            .iter()
            .map(|&i| rows[i].row.address.clone())
            .collect();
        self.cursor.settle(&self.keys);
    }

    /// The rows to show, in order.
    pub(crate) fn shown(&self) -> impl ExactSizeIterator<Item = &Peer> {
        self.shown.iter().map(|&i| &self.rows[i])
    }

    pub(crate) fn keys(&self) -> &[String] {
        &self.keys
    }

    /// Whether there was a reading.
    pub(crate) fn is_read(&self) -> bool {
        self.at.is_some()
    }

    pub(super) fn go(&mut self, to: Move) {
        self.cursor.go(to, &self.keys);
    }

    pub(super) fn sort(&mut self, is_next: bool) {
        self.order = step(&PeerOrder::ALL, self.order, is_next);
        self.is_reversed = false;
        self.arrange();
    }

    pub(super) fn reverse(&mut self) {
        self.is_reversed = !self.is_reversed;
        self.arrange();
    }

    pub(super) fn filter(&self) -> &str {
        &self.filter
    }

    pub(super) fn edit(&mut self, change: impl FnOnce(&mut String)) {
        change(&mut self.filter);
        self.arrange();
    }
}

/// Addresses by their value, sessions that are not established first, the latest change first, and large numbers first.
fn compare(order: PeerOrder, a: &Peer, b: &Peer) -> Ordering {
    let (one, other) = (&a.row, &b.row);
    match order {
        PeerOrder::Address => {
            let value = |row: &Neighbor| row.address.parse::<IpAddr>().ok();
            value(one).cmp(&value(other))
        }
        PeerOrder::State => {
            let is_up = |row: &Neighbor| row.state == "Established";
            is_up(one)
                .cmp(&is_up(other))
                .then_with(|| one.state.cmp(&other.state))
        }
        PeerOrder::Since => {
            let since = |row: &Neighbor| row.since_s.unwrap_or(f64::INFINITY);
            since(one).total_cmp(&since(other))
        }
        PeerOrder::Prefixes => other.prefixes_in.cmp(&one.prefixes_in),
        PeerOrder::Messages => {
            let rate = |peer: &Peer| peer.rate_in.unwrap_or(0.0) + peer.rate_out.unwrap_or(0.0);
            let total = |row: &Neighbor| row.messages_in.saturating_add(row.messages_out);
            rate(b)
                .total_cmp(&rate(a))
                .then_with(|| total(other).cmp(&total(one)))
        }
    }
}
