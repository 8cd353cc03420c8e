//! Who was on line, and why not any more.

use core::net::Ipv4Addr;
use std::collections::VecDeque;

use base::Instant;

use crate::end::End;
use crate::key::Traffic;

/// A subscriber that is not on line any more.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Its name, as far as it said one.
    pub name: Box<[u8]>,
    /// Its account's number.
    pub account: u64,
    /// Its tunnel's and session's ids on our side.
    pub ids: (u32, u32),
    /// The address that it had.
    pub address: Option<Ipv4Addr>,
    /// When its session came up.
    pub created: Instant,
    /// When its first network did.
    pub up: Option<Instant>,
    /// When it ended.
    pub ended: Instant,
    /// What it sent and got.
    pub traffic: Traffic,
    /// Why.
    pub reason: End,
}

/// The last ones of them.
#[derive(Debug)]
pub(crate) struct History {
    ended: VecDeque<Ended>,
    max: usize,
}

impl History {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            ended: VecDeque::new(),
            max,
        }
    }

    pub(crate) fn push(&mut self, ended: Ended) {
        if self.max == 0 {
            return;
        }
        if self.ended.len() >= self.max {
            self.ended.pop_front();
        }
        self.ended.push_back(ended);
    }

    /// The `n`th, the latest first.
    pub(crate) fn get(&self, n: usize) -> Option<&Ended> {
        let last = self.ended.len().checked_sub(1)?;
        self.ended.get(last.checked_sub(n)?)
    }
}
