//! The subscribers that ended last, and why.

use core::net::Ipv4Addr;
use std::collections::VecDeque;

use base::Instant;

use crate::access::{Access, L2tp};
use crate::end::End;
use crate::key::Traffic;

/// A subscriber that ended.
#[derive(Clone, Debug)]
pub struct Ended<P = <L2tp as Access>::Place, R = <L2tp as Access>::Reason> {
    /// Its name; empty if it gave none.
    pub name: Box<[u8]>,
    /// Its account's number.
    pub account: u64,
    /// Where its session was.
    pub place: P,
    /// The address that it had.
    pub address: Option<Ipv4Addr>,
    /// When its session came up.
    pub created: Instant,
    /// When its first network protocol did.
    pub up: Option<Instant>,
    /// When it ended.
    pub ended: Instant,
    /// Its traffic.
    pub traffic: Traffic,
    /// Why.
    pub reason: End<R>,
}

/// The last ones, up to a limit.
#[derive(Debug)]
pub(crate) struct History<P, R> {
    ended: VecDeque<Ended<P, R>>,
    max: usize,
}

impl<P, R> History<P, R> {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            ended: VecDeque::new(),
            max,
        }
    }

    pub(crate) fn push(&mut self, ended: Ended<P, R>) {
        if self.max == 0 {
            return;
        }
        if self.ended.len() >= self.max {
            self.ended.pop_front();
        }
        self.ended.push_back(ended);
    }

    /// The `n`th, the latest first.
    pub(crate) fn get(&self, n: usize) -> Option<&Ended<P, R>> {
        let last = self.ended.len().checked_sub(1)?;
        self.ended.get(last.checked_sub(n)?)
    }
}
