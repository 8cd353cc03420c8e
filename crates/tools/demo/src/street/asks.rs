//! What the demo asks a daemon: the rows of `show`.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

use control::request::{Do, Nothing, ShowSubscriber, SubscriberFilter, SubscriberSelector};

use crate::ends::End;

/// Subscribers of a daemon, by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Subscribers {
    /// With addresses of this daemon.
    pub(super) own: u64,
    /// Handed over to an LNS that has them.
    pub(super) handed_over: u64,
    /// Of `own`, those with an IPv4 address.
    pub(super) with_ipv4: u64,
}

/// The translation of addresses.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct Nat {
    pub(super) external_addresses: u64,
    pub(super) blocks_used: u64,
    pub(super) subscribers: u64,
    pub(super) mappings: u64,
    pub(super) outbound: u64,
    pub(super) inbound: u64,
    dropped: Dropped,
}

/// Dropped packets by reason, added up.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(from = "BTreeMap<String, u64>")]
struct Dropped(u64);

impl From<BTreeMap<String, u64>> for Dropped {
    fn from(counts: BTreeMap<String, u64>) -> Self {
        Self(counts.values().sum())
    }
}

impl Nat {
    /// Packets that the translation dropped.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.0
    }
}

/// Leases of pools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Leases {
    pub(super) addresses: u64,
    pub(super) links: u64,
    pub(super) delegated: u64,
}

/// The queue of a subscriber towards it.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct Queue {
    pub(super) passed: u64,
    pub(super) waited: u64,
    pub(super) dropped: u64,
}

/// Rate and queue of one subscriber.
#[derive(Clone, Debug, Default)]
pub(super) struct Detail {
    pub(super) rate_down_bps: Option<u64>,
    /// Which source decided on the rate.
    pub(super) rate_from: Option<String>,
    pub(super) queue: Queue,
}

impl End {
    /// Counts the subscribers in `show subscribers`.
    pub(super) fn subscribers(&mut self) -> Result<Subscribers> {
        #[derive(Deserialize)]
        struct Row {
            state: String,
            address: Option<String>,
            lns: Option<String>,
        }
        let mut counts = Subscribers::default();
        let all = Do::ShowSubscribers(SubscriberFilter::default());
        self.client.rows(&all, |row| {
            let row: Row = serde_json::from_str(row)?;
            if row.state == "up" {
                match row.lns {
                    Some(_) => counts.handed_over += 1,
                    None => {
                        counts.own += 1;
                        counts.with_ipv4 += u64::from(row.address.is_some());
                    }
                }
            }
            Ok(())
        })?;
        Ok(counts)
    }

    /// `show nat`.
    pub(super) fn nat(&mut self) -> Result<Nat> {
        self.client.one(&Do::ShowNat(Nothing {}))
    }

    /// Adds up the leases in `show pools`.
    pub(super) fn leases(&mut self) -> Result<Leases> {
        let mut leases = Leases::default();
        self.client.rows(&Do::ShowPools(Nothing {}), |row| {
            let row: Value = serde_json::from_str(row)?;
            let used = row["used"].as_u64().unwrap_or(0);
            match (row["schema"].as_str(), row["name"].as_str()) {
                (Some("pool/1"), _) => leases.addresses += used,
                (Some("pool.prefix/1"), Some("links")) => leases.links += used,
                (Some("pool.prefix/1"), _) => leases.delegated += used,
                _ => {}
            }
            Ok(())
        })?;
        Ok(leases)
    }

    /// The CoA-ACKs in `show radius`.
    pub(super) fn change_acks(&mut self) -> Result<u64> {
        let mut acks = None;
        self.client.rows(&Do::ShowRadius(Nothing {}), |row| {
            let row: Value = serde_json::from_str(row)?;
            acks = acks.or(row["disconnects"]["change_acks"].as_u64());
            Ok(())
        })?;
        acks.context("the daemon does not count CoA-ACKs")
    }

    /// `show subscriber NAME`.
    pub(super) fn detail(&mut self, name: &str) -> Result<Detail> {
        let of = SubscriberSelector {
            who: Some(name.to_owned()),
            tunnel: None,
            session: None,
            version: None,
        };
        let mut detail = None;
        let what = Do::ShowSubscriber(ShowSubscriber { of, history: 0 });
        self.client.rows(&what, |row| {
            let row: Value = serde_json::from_str(row)?;
            let queue = row["queue_down"].clone();
            detail.get_or_insert(Detail {
                rate_down_bps: row["queue"]["rate_down_bps"].as_u64(),
                rate_from: row["queue"]["rate_down_from"].as_str().map(Into::into),
                queue: serde_json::from_value(queue).unwrap_or_default(),
            });
            Ok(())
        })?;
        detail.with_context(|| format!("the daemon has no subscriber {name}"))
    }
}
