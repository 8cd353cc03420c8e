//! Accounting records on their way to a RADIUS server (RFC 2866). Each record is written to disk
//! and sent to a server at the same time, and is forgotten once a server has acknowledged it.
//! Records that do not fit into memory are read back from disk, oldest first.
//!
//! Start with [`Accounts::take`], which makes a record, and [`Accounts::work`], which sends them.

#[cfg(test)]
mod storms;

use std::path::Path;

use crate::served::{Account, Edge};
use aaa::accounting::{
    Authentic, Delivery, DeliveryConfig, DeliveryEvent, DeliveryTotals, QueueUsage, Record, Report,
    SessionId, Subscriber, TerminateCause, Usage,
};
use aaa::radius::{ANY_SERVER, Client, Nas};
use anyhow::{Context, Result};
use base::{Duration, Instant};
use edge::Entry;
use ledger::{Ledger, Options, RecordId, Stats};
use wire::radius::Attributes;
use wire::radius::attribute::USER_NAME;

use super::line::Place;

/// Interval at which the disk is read while some records are only there.
const LOOK: Duration = Duration::from_millis(100);
/// Delay of the first look at an answer from the disk; each further one waits twice as long.
const POLL: Duration = Duration::from_millis(1);
/// Number of records read back at a time.
const READ_BACK: usize = 1_024;

/// All accounting records that no server has acknowledged, in memory or on disk.
pub(super) struct Accounts {
    ledger: Option<Ledger>,
    delivery: Delivery,
    nas: Nas,
    boot: u32,
    /// The newest record, and the newest one handed to the delivery.
    newest: u64,
    handed: u64,
    /// Records that had no room on disk or in the delivery, and are lost.
    pub(super) lost: u64,
    look_at: Option<Instant>,
    /// What the disk was asked for, until it answers.
    asked: Option<Asked>,
    /// Whether the disk could not be read the last time.
    is_unread: bool,
    record: Vec<u8>,
    /// The vendor number of the attributes with counters of queues, if records have them.
    pub(super) queue_vendor: Option<u32>,
}

/// Records that were asked for.
#[derive(Clone, Copy)]
struct Asked {
    room: usize,
    /// The newest record that was on disk before.
    committed: u64,
    poll: Duration,
}

/// The key of a session's draft.
fn key(boot: u32, number: u64) -> u128 {
    u128::from(boot) << 64 | u128::from(number)
}

/// Passes an account's subscriber and usage to `work`.
fn with_subscriber(
    account: &Account,
    edge: &Edge,
    queue_vendor: Option<u32>,
    work: impl FnOnce(Subscriber<'_>, Usage),
) {
    let place = Place::new(
        edge,
        account.subscriber,
        account.place,
        account.numbers.as_deref(),
    )
    .with_far(account.far.as_deref());
    let subscriber = Subscriber {
        user: &account.name,
        line: place.line(),
        class: &account.class,
        address: account.address,
        interface_id: account.interface.map(u64::to_be_bytes),
        ipv6: account.ipv6,
        authentic: if account.is_local {
            Authentic::Local
        } else {
            Authentic::Radius
        },
    };
    let usage = Usage {
        time_s: account.age.as_millis() / 1_000,
        input_octets: account.traffic.octets_in,
        output_octets: account.traffic.octets_out,
        input_packets: account.traffic.packets_in,
        output_packets: account.traffic.packets_out,
        queue: queue_vendor
            .zip(account.queue)
            .map(|(vendor, queues)| QueueUsage {
                vendor,
                dropped: queues.map(|queue| queue.dropped),
                marked: queues.map(|queue| queue.marked),
            }),
    };
    work(subscriber, usage);
}

impl Accounts {
    /// Opens the store if one is configured. Records left in it by earlier runs are delivered
    /// first.
    pub(super) fn open(
        store: Option<&Path>,
        options: Options,
        nas: Nas,
        boot: u32,
        now: Instant,
    ) -> Result<Self> {
        let mut look_at = None;
        let ledger = match store {
            None => None,
            Some(path) => {
                let (ledger, recovered) = Ledger::open(path, options)
                    .with_context(|| format!("accounting store {}", path.display()))?;
                if let Some((aside, why)) = &recovered.damaged {
                    tracing::error!(file = %aside.display(), %why, "the accounting store was damaged; it was moved aside");
                }
                if recovered.records > 0 {
                    let records = recovered.records;
                    tracing::info!(records, "accounting records of an earlier run are pending");
                    look_at = Some(now);
                }
                Some(ledger)
            }
        };
        let newest = u64::from(look_at.is_some());
        Ok(Self {
            ledger,
            delivery: Delivery::new(DeliveryConfig::default()),
            nas,
            boot,
            newest,
            handed: 0,
            lost: 0,
            look_at,
            asked: None,
            is_unread: false,
            record: Vec::new(),
            queue_vendor: None,
        })
    }

    /// Whether open sessions are kept on disk.
    pub(super) fn keeps_open(&self) -> bool {
        self.ledger.is_some()
    }

    /// The number of this start of the daemon; session ids in records contain it.
    pub(super) fn boot(&self) -> u32 {
        self.boot
    }

    /// Why records cannot be written to the disk.
    pub(super) fn store_failure(&self) -> Option<String> {
        self.ledger.as_ref().and_then(Ledger::failure)
    }

    /// Counters of the delivery, and of the store if there is one.
    pub(super) fn totals(&self) -> (DeliveryTotals, Option<Stats>) {
        let stats = self.ledger.as_ref().map(Ledger::stats);
        (self.delivery.totals(), stats)
    }

    /// Queues an Accounting-On or Accounting-Off record.
    pub(super) fn on_or_off(&mut self, on: bool, wall_s: u64) {
        let report = if on { Report::On } else { Report::Off };
        self.note(0, wall_s, report);
    }

    /// Adds the Stop of each session that an earlier run left open, because it was killed. The Stop has
    /// the counters that were committed last. `noted` gets the number and the bytes of each record.
    /// Call it once, before the first record of this run.
    pub(super) fn close_left_open(&mut self, mut noted: impl FnMut(u64, &[u8])) {
        let mut from = 0;
        let mut count = 0_u64;
        loop {
            let Some(ledger) = &mut self.ledger else {
                return;
            };
            let drafts = match ledger.drafts(from, READ_BACK) {
                Ok(drafts) => drafts,
                Err(error) => {
                    tracing::error!(%error, "open sessions of an earlier run cannot be read");
                    return;
                }
            };
            let Some((last, _)) = drafts.last() else {
                break;
            };
            from = last + 1;
            for (key, draft) in drafts {
                self.record = draft;
                if !self.push() {
                    // The draft stays for the next start.
                    tracing::error!(
                        "open sessions of an earlier run cannot be closed: the accounting store is full"
                    );
                    return;
                }
                noted(self.newest, &self.record);
                if let Some(ledger) = &mut self.ledger {
                    ledger.discard(key);
                }
                count += 1;
            }
        }
        if count > 0 {
            tracing::warn!(
                sessions = count,
                "an earlier run ended with open sessions; each gets a Stop (NAS-Reboot)"
            );
        }
    }

    /// Makes a record for an entry of a subscriber's account.
    pub(super) fn take(&mut self, account: &Account, edge: &Edge, wall_s: u64) {
        let ends = matches!(account.entry, Entry::Stop(_));
        with_subscriber(account, edge, self.queue_vendor, |subscriber, usage| {
            if !ends {
                self.draft(account.number, wall_s, subscriber, usage);
            }
            let report = match account.entry {
                Entry::Start => Report::Start(subscriber),
                Entry::Interim => Report::Interim(subscriber, usage),
                Entry::Stop(cause) => Report::Stop(subscriber, usage, cause),
            };
            self.note(account.number, wall_s, report);
        });
        if ends && let Some(ledger) = &mut self.ledger {
            ledger.discard(key(self.boot, account.number));
        }
    }

    /// Stores the Stop that a session gets if this run is killed.
    pub(super) fn keep_open(&mut self, account: &Account, edge: &Edge, wall_s: u64) {
        if self.keeps_open() {
            with_subscriber(account, edge, self.queue_vendor, |subscriber, usage| {
                self.draft(account.number, wall_s, subscriber, usage);
            });
        }
    }

    fn draft(&mut self, number: u64, at_s: u64, subscriber: Subscriber<'_>, usage: Usage) {
        let Some(ledger) = &mut self.ledger else {
            return;
        };
        let boot = self.boot;
        let record = Record {
            nas: &self.nas,
            session: SessionId { boot, number },
            at_s,
            report: Report::Stop(subscriber, usage, TerminateCause::NasReboot),
        };
        self.record.clear();
        // A name that is too long is counted when the record itself is made, and the store counts what it
        // refuses.
        if record.encode(&mut self.record).is_ok() {
            let _ = ledger.keep(key(boot, number), &self.record);
        }
    }

    fn note(&mut self, number: u64, at_s: u64, report: Report<'_>) {
        let record = Record {
            nas: &self.nas,
            session: SessionId {
                boot: self.boot,
                number,
            },
            at_s,
            report,
        };
        self.record.clear();
        if record.encode(&mut self.record).is_err() {
            self.lost += 1;
            return;
        }
        self.push();
    }

    /// Hands the record to the store, and to the delivery if that has all earlier ones. Returns
    /// `false` if the record is lost.
    fn push(&mut self) -> bool {
        let id = match &mut self.ledger {
            None => self.newest + 1,
            Some(ledger) => match ledger.add(&self.record) {
                Ok(RecordId(id)) => id,
                Err(why) => {
                    if self.lost == 0 {
                        tracing::error!(%why, "accounting records are lost");
                    }
                    self.lost += 1;
                    return false;
                }
            },
        };
        let in_step = self.handed == self.newest;
        self.newest = id;
        if !in_step {
            return true;
        }
        match self.delivery.push(id, &self.record) {
            Ok(()) => self.handed = id,
            Err(_) if self.ledger.is_some() => self.look_at = Some(Instant::ZERO),
            Err(_) => {
                self.lost += 1;
                self.handed = id;
            }
        }
        true
    }

    /// Hands records to the RADIUS client, as far as both have room. `servers` names the servers for the user of a record.
    pub(super) fn work(
        &mut self,
        client: &mut Client,
        servers: impl Fn(&[u8]) -> u16,
        now: Instant,
        wall_s: u64,
    ) {
        if self.look_at.is_some_and(|at| at <= now) {
            self.read_back(now);
        }
        while let Some(outgoing) = self.delivery.poll_send(now) {
            let token = outgoing.token;
            let attributes = Attributes::parse(outgoing.record).ok();
            let user = attributes.and_then(|mut all| all.find(|one| one.kind == USER_NAME));
            let servers = user.map_or(ANY_SERVER, |user| servers(user.value));
            let taken = client.account_at(now, wall_s, outgoing.record, token, servers);
            if taken.is_err() {
                self.delivery.failed(token, now);
            }
        }
        while let Some(event) = self.delivery.poll_event() {
            let (DeliveryEvent::Delivered { token } | DeliveryEvent::GivenUp { token }) = event;
            if let Some(ledger) = &mut self.ledger {
                ledger.acknowledged(RecordId(token));
            }
        }
    }

    /// Reads back records that are only on disk. The ledger reads on a thread of its own, so that a disk
    /// that is slow or hangs does not hold up the caller.
    fn read_back(&mut self, now: Instant) {
        self.look_at = Some(now + LOOK);
        let Some(ledger) = &mut self.ledger else {
            self.look_at = None;
            return;
        };
        let mut asked = match self.asked.take() {
            Some(asked) => asked,
            None => {
                let room = self.delivery.want_more().min(READ_BACK);
                if room == 0 {
                    return;
                }
                // This is read before the file: records committed during the read are looked for next time.
                let committed = ledger.stats().committed.0;
                ledger.request(RecordId(self.handed), room);
                Asked {
                    room,
                    committed,
                    poll: POLL,
                }
            }
        };
        let records = match ledger.answer() {
            Some(Ok(records)) => records,
            Some(Err(error)) => {
                // One line for each outage, not one for each look.
                if !core::mem::replace(&mut self.is_unread, true) {
                    tracing::error!(%error, "the accounting store cannot be read; trying again");
                }
                return;
            }
            None => {
                self.look_at = Some(now + asked.poll);
                asked.poll = (asked.poll + asked.poll).min(LOOK);
                self.asked = Some(asked);
                return;
            }
        };
        self.is_unread = false;
        self.take_read(&records, asked, now);
    }

    fn take_read(&mut self, records: &[(RecordId, Vec<u8>)], asked: Asked, now: Instant) {
        let more = records.len() == asked.room;
        // A record may have been handed over since it was asked for.
        let handed = self.handed;
        for (RecordId(id), record) in records.iter().filter(|(id, _)| id.0 > handed) {
            if self.delivery.push(*id, record).is_err() {
                return;
            }
            self.handed = *id;
            self.newest = self.newest.max(*id);
        }
        if records.is_empty() && asked.committed >= self.newest {
            // Every record after the last one handed over was acknowledged earlier.
            self.handed = self.newest;
            self.look_at = None;
        } else if more {
            self.look_at = Some(now);
        } else if self.handed == self.newest {
            self.look_at = None;
        }
    }

    /// A server acknowledged the record.
    pub(super) fn recorded(&mut self, token: u64) {
        self.delivery.recorded(token);
    }

    /// No server accepted the record.
    pub(super) fn failed(&mut self, token: u64, now: Instant) {
        self.delivery.failed(token, now);
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.delivery.handle_timeout(now);
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let delivery = self.delivery.poll_timeout();
        delivery.into_iter().chain(self.look_at).min()
    }

    /// Whether no record waits.
    pub(super) fn is_idle(&self) -> bool {
        self.delivery.totals().held == 0 && self.handed == self.newest
    }

    /// Commits all records that are not on disk yet.
    pub(super) fn close(&mut self) {
        let Some(ledger) = self.ledger.take() else {
            return;
        };
        if let Err(error) = ledger.close() {
            tracing::error!(%error, "accounting records are lost");
        }
    }
}
