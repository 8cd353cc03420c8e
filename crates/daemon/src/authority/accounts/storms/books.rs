//! The test's own record of every request, reply and accounting record, over all lives of the edge.
//! It asserts that none is lost and that identifiers are unique.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;

use aaa::accounting::SessionId;
use wire::radius::attribute::{
    ACCT_SESSION_ID, ACCT_SESSION_TIME, ACCT_STATUS_TYPE, ACCT_TERMINATE_CAUSE, status,
};
use wire::radius::{Attributes, Packet, code};

/// Where an identifier is in flight: server, socket, identifier.
type Place = (SocketAddr, u32, u8);

/// One record.
#[derive(Default)]
struct Noted {
    /// The life of the edge that made it.
    life: u32,
    /// Whether the store has committed it.
    on_disk: bool,
    /// How many times servers received it.
    received: u32,
    /// Whether a server's acknowledgement arrived.
    acknowledged: bool,
    /// Whether the store has committed the acknowledgement.
    forgotten: bool,
    /// Whether the edge was killed before the record was on disk.
    may_be_lost: bool,
}

/// What happened in a run, so that a test can check its coverage.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    pub(super) starts: u64,
    pub(super) records: u64,
    pub(super) received_again: u64,
    pub(super) lost: u64,
    pub(super) sent_again_after_a_kill: u64,
    pub(super) kills: u64,
    pub(super) given_up: u64,
    /// Sessions that got their Stop after a kill.
    pub(super) closed: u64,
}

impl Seen {
    pub(super) fn add(&mut self, other: Self) {
        self.starts += other.starts;
        self.records += other.records;
        self.received_again += other.received_again;
        self.lost += other.lost;
        self.sent_again_after_a_kill += other.sent_again_after_a_kill;
        self.kills += other.kills;
        self.given_up += other.given_up;
        self.closed += other.closed;
    }
}

#[derive(Default)]
pub(super) struct Books {
    pub(super) seen: Seen,
    life: u32,
    /// Sessions that a server accepted.
    accepted: HashSet<Vec<u8>>,
    /// Records by their bytes; no two records are alike.
    noted: HashMap<Vec<u8>, Noted>,
    /// Records by the store's number, which the store may reuse once the record is gone.
    numbers: HashMap<u64, Vec<u8>>,
    /// Sessions without a Stop, each with the time of its last record: now, and in the store.
    running: HashMap<Vec<u8>, Vec<u8>>,
    on_disk: HashMap<Vec<u8>, Vec<u8>>,
    /// Outstanding requests with their places, and the request that holds each identifier.
    open: HashMap<Vec<u8>, Option<Place>>,
    holders: HashMap<Place, Vec<u8>>,
}

fn find(record: &[u8], kind: u8) -> Vec<u8> {
    let mut attributes = Attributes::parse(record).expect("a record");
    let found = attributes.find(|attribute| attribute.kind == kind);
    found.expect("it has one").value.to_vec()
}

fn is_of(record: &[u8], kind: u32) -> bool {
    find(record, ACCT_STATUS_TYPE) == kind.to_be_bytes()
}

impl Books {
    /// A server accepts a user.
    pub(super) fn accepted(&mut self, request: &Packet<'_>) {
        let session = request.find(ACCT_SESSION_ID).expect("it has one");
        self.accepted.insert(session.value.to_vec());
    }

    /// A subscriber is connected.
    pub(super) fn up(&mut self, session: SessionId) {
        self.seen.starts += 1;
        let is_accepted = self.accepted.contains(&session.text()[..]);
        assert!(is_accepted, "{session}: no server accepted it");
    }

    /// A record was handed to the store and to the delivery.
    pub(super) fn noted(&mut self, number: u64, record: &[u8]) {
        self.seen.records += 1;
        let session = find(record, ACCT_SESSION_ID);
        if is_of(record, status::START) {
            self.running.insert(session, 0_u32.to_be_bytes().to_vec());
        } else if is_of(record, status::INTERIM_UPDATE) {
            self.running
                .insert(session, find(record, ACCT_SESSION_TIME));
        } else if is_of(record, status::STOP) {
            self.running.remove(&session);
        }
        let noted = Noted {
            life: self.life,
            ..Noted::default()
        };
        let before = self.noted.insert(record.to_vec(), noted);
        assert!(before.is_none(), "two records alike");
        self.numbers.insert(number, record.to_vec());
    }

    /// A session of an earlier life gets its Stop, with what was on disk of its last record.
    pub(super) fn closed(&mut self, number: u64, record: &[u8]) {
        assert!(is_of(record, status::STOP));
        assert_eq!(
            find(record, ACCT_TERMINATE_CAUSE),
            11_u32.to_be_bytes(),
            "NAS Reboot"
        );
        let session = find(record, ACCT_SESSION_ID);
        let time = self.running.remove(&session);
        assert_eq!(
            time,
            Some(find(record, ACCT_SESSION_TIME)),
            "as committed last"
        );
        self.seen.closed += 1;
        self.numbers.insert(number, record.to_vec());
        let noted = Noted {
            life: self.life,
            ..Noted::default()
        };
        // After two kills in a row, it is made again from the same draft.
        let before = self.noted.insert(record.to_vec(), noted);
        assert!(before.is_none_or(|before| !before.on_disk), "a Stop twice");
    }

    /// Asserts that no session of an earlier life is open.
    pub(super) fn assert_closed(&self) {
        assert!(
            self.running.is_empty(),
            "{} have no Stop",
            self.running.len()
        );
    }

    /// A server received a record.
    pub(super) fn received(&mut self, request: &Packet<'_>) {
        let record = request.attributes().octets();
        let noted = self.noted.get_mut(record);
        let noted = noted.expect("what a server gets was noted, octet for octet");
        self.seen.received_again += u64::from(noted.received > 0);
        noted.received += 1;
    }

    /// All records and acknowledgements so far are on disk.
    pub(super) fn committed(&mut self) {
        let life = self.life;
        self.on_disk = self.running.clone();
        for noted in self.noted.values_mut() {
            noted.on_disk |= noted.life == life;
            noted.forgotten |= noted.acknowledged;
        }
    }

    /// The edge is killed; returns the number of its next life.
    pub(super) fn killed(&mut self) -> u32 {
        self.seen.kills += 1;
        self.running = self.on_disk.clone();
        for noted in self.noted.values_mut() {
            noted.may_be_lost |= noted.life == self.life && !noted.on_disk;
            if noted.acknowledged && !noted.forgotten {
                noted.acknowledged = false;
                self.seen.sent_again_after_a_kill += u64::from(noted.on_disk);
            }
        }
        self.open.clear();
        self.holders.clear();
        self.life += 1;
        self.life
    }

    /// A request leaves for a server. Asserts that no other request holds its identifier there, and
    /// that it has not been answered before.
    pub(super) fn sent(&mut self, peer: SocketAddr, socket: u32, octets: &[u8]) {
        let request = Packet::parse(octets).expect("a request");
        let place = (peer, socket, request.identifier());
        let name = match request.code() {
            code::ACCOUNTING_REQUEST => {
                let record = request.attributes().octets();
                self.check_order(record);
                record.to_vec()
            }
            _ => find(request.attributes().octets(), ACCT_SESSION_ID),
        };
        let before = self.holders.insert(place, name.clone());
        if let Some(other) = before.filter(|other| *other != name) {
            let at = self.open.get(&other).copied().flatten();
            assert_ne!(at, Some(place), "two requests of one identifier");
        }
        self.open.insert(name, Some(place));
    }

    fn check_order(&self, record: &[u8]) {
        let noted = self.noted.get(record).expect("what is sent was noted");
        assert!(
            !noted.acknowledged,
            "what is acknowledged is not sent again"
        );
        if !is_of(record, status::STOP) || self.seen.given_up > 0 {
            return;
        }
        let session = find(record, ACCT_SESSION_ID);
        let mut others = self.noted.iter();
        let start = others.find(|(other, _)| {
            is_of(other, status::START) && find(other, ACCT_SESSION_ID) == session
        });
        let (_, start) = start.expect("it had a start");
        assert!(start.acknowledged, "a Stop before its Start");
    }

    /// A request about a session was answered or timed out.
    pub(super) fn answered(&mut self, session: SessionId) {
        self.open.remove(&session.text()[..]);
    }

    /// The client reports that a server has a record.
    pub(super) fn recorded(&mut self, number: u64) {
        let record = &self.numbers[&number];
        self.open.remove(record);
        let noted = self.noted.get_mut(record).expect("it was noted");
        assert!(noted.received > 0, "acknowledged, and no server has it");
        noted.acknowledged = true;
    }

    pub(super) fn not_recorded(&mut self, number: u64) {
        self.open.remove(&self.numbers[&number]);
    }

    /// Asserts that servers have every record and every Start has its Stop, except those a kill may
    /// have lost.
    pub(super) fn assert_whole(&self) {
        for (record, noted) in &self.noted {
            assert!(
                noted.received > 0 || noted.may_be_lost,
                "lost: {record:02x?}"
            );
            let session = find(record, ACCT_SESSION_ID);
            if is_of(record, status::START) && noted.life == self.life {
                let is_stop = |other: &&Vec<u8>| {
                    is_of(other, status::STOP) && find(other, ACCT_SESSION_ID) == session
                };
                assert_eq!(self.noted.keys().filter(is_stop).count(), 1);
            }
        }
        assert!(self.open.is_empty(), "{} have no answer", self.open.len());
    }

    pub(super) fn lost(&self) -> u64 {
        let lost = self.noted.values().filter(|noted| noted.received == 0);
        lost.count() as u64
    }
}
