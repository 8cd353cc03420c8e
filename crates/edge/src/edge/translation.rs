//! The NAT of an edge: one on each path.
//!
//! The edge chooses the path that translates a subscriber when its packets may first pass, and keeps it until the session
//! ends: a mapping is in one table, and its port says on which path that is, so that mappings cannot move. It chooses the
//! path of the subscriber's queues, or the one on which its packets arrive; if that has far more subscribers than another,
//! or is not known, the one with the fewest.

use core::net::Ipv4Addr;
use std::sync::Arc;

use base::Instant;
use hashbrown::HashMap;
use nat::{
    Config, ConfigError, Event, Forward, ForwardError, ForwardRequest, Nat, Protocol, Range,
    Reserve, Share, SubscriberView,
};

use super::Edge;
use super::homes::near_or_idlest;
use crate::access::Access;
use crate::path::asked::{Answer, ForwardKey, Inquiry, Question, key};
use crate::path::change::{NatStep, Step};
use crate::path::nat::Translator;
use crate::path::{Asked, NatTotals, Owner};

/// What the edge knows of its paths' NATs.
#[derive(Debug)]
pub(crate) struct Translation {
    /// The settings, as they are for all paths together.
    config: Config,
    /// Subscribers of each path.
    loads: Vec<u32>,
    /// The paths of subscribers, by place.
    homes: HashMap<u32, u8>,
    /// Ports below the blocks that not all paths have answered for.
    forwarding: Vec<Inquiry>,
    reserve: Reserve,
}

/// Subscribers of a path, and the path and cursor that continue.
pub type NatSubscribers = (Vec<SubscriberView>, Option<(u8, u32)>);

impl<A: Access> Edge<A> {
    /// Translates the packets of subscribers from these inside addresses from now on. Subscribers join the NAT with their
    /// first packet, and leave it when their session ends. With several paths, each has a part of the port blocks and of the
    /// limits. `reserve` is called for their memory ([`Nat::on_reserve`]). Call it before [`Edge::replica`].
    ///
    /// # Errors
    /// Settings that contradict each other.
    pub fn set_nat(
        &mut self,
        config: Config,
        inside: Vec<Range>,
        reserve: Reserve,
    ) -> Result<(), ConfigError> {
        self.check_shares(&config)?;
        let mut nat = Nat::new(config.share(self.share(0)))?;
        nat.on_reserve(reserve);
        self.path.nat = Some(Box::new(Translator::new(nat, inside)));
        self.nat = Some(Box::new(Translation {
            config,
            loads: vec![0; usize::from(self.config.paths.max(1))],
            homes: HashMap::new(),
            forwarding: Vec::new(),
            reserve,
        }));
        Ok(())
    }

    /// Checks the settings of all paths together, and of the last one, whose parts of limits are the smallest.
    fn check_shares(&self, config: &Config) -> Result<(), ConfigError> {
        config.check()?;
        let last = usize::from(self.config.paths.max(1)) - 1;
        config.share(self.share(last)).check()
    }

    fn share(&self, number: usize) -> Share {
        let paths = self.config.paths.max(1);
        let number = u16::try_from(number).ok();
        let share = number.and_then(|number| Share::new(number, paths));
        share.expect("a path has a number below their count")
    }

    /// The NAT of another path.
    pub(super) fn nat_of(&self, number: usize) -> Option<Nat> {
        let own = self.nat.as_ref()?;
        let nat = Nat::new(own.config.share(self.share(number)));
        let mut nat = nat.expect("the same settings as those of the first path");
        nat.on_reserve(own.reserve);
        Some(nat)
    }

    /// Translates packets from these inside addresses from now on. Mappings of other addresses stay until they time out,
    /// for packets from the inside.
    pub fn set_nat_inside(&mut self, inside: Vec<Range>) {
        self.change(Step::Nat(Arc::new(NatStep::Inside(inside))));
    }

    /// Takes other settings ([`Nat::reconfigure`]).
    ///
    /// # Errors
    /// Nothing changed: [`ConfigError`].
    pub fn reconfigure_nat(&mut self, config: Config) -> Result<(), ConfigError> {
        self.check_shares(&config)?;
        let share = self.share(0);
        let Some(translator) = &mut self.path.nat else {
            return Ok(());
        };
        translator.nat.reconfigure(config.share(share))?;
        if let Some(nat) = &mut self.nat {
            let seed = nat.config.seed;
            nat.config = Config { seed, ..config };
            let config = Box::new(nat.config.clone());
            // The first path has it already; a second time changes nothing.
            self.change(Step::Nat(Arc::new(NatStep::Config(config))));
        }
        Ok(())
    }

    /// The settings of the NAT, as they are for all paths together.
    #[must_use]
    pub fn nat_config(&self) -> Option<&Config> {
        self.nat.as_ref().map(|nat| &nat.config)
    }

    /// The NAT of this path, if there is one.
    #[must_use]
    pub fn nat(&self) -> Option<&Nat> {
        self.path.nat.as_ref().map(|one| &one.nat)
    }

    /// The next event of the NAT of this path, oldest first.
    pub fn poll_nat_event(&mut self) -> Option<Event> {
        self.path.poll_nat_event()
    }

    fn ask_nat<T>(
        &mut self,
        question: Question,
        merge: fn(Vec<Answer>) -> T,
        now: Instant,
    ) -> Option<Asked<T>> {
        self.nat.as_ref()?;
        let inquiry = Inquiry::new(question, self.config.paths, now);
        self.change(Step::Nat(Arc::new(NatStep::Ask(inquiry.clone()))));
        Some(Asked { inquiry, merge })
    }

    /// Asks for counters and levels. `None` without a NAT.
    pub fn nat_totals(&mut self, now: Instant) -> Option<Asked<NatTotals>> {
        self.ask_nat(Question::Totals, NatTotals::merge, now)
    }

    /// Asks for the subscribers of a path from a cursor on, up to `most`; start with path 0 and cursor 0. `None` without a
    /// NAT, or such a path.
    pub fn nat_subscribers(
        &mut self,
        (path, cursor): (u8, u32),
        most: usize,
        now: Instant,
    ) -> Option<Asked<NatSubscribers>> {
        if u16::from(path) >= self.config.paths.max(1) {
            return None;
        }
        let question = Question::Subscribers { path, cursor, most };
        self.ask_nat(question, subscribers, now)
    }

    /// Asks for forwarded ports in the order of their external ends, behind one of them, up to `most`. `None` without a NAT.
    pub fn nat_forwards(
        &mut self,
        after: Option<&Forward>,
        most: usize,
        now: Instant,
    ) -> Option<Asked<Vec<Forward>>> {
        let after = after.map(key);
        self.ask_nat(Question::Forwards { after, most }, forwards, now)
    }

    /// Asks who has an external port. `None` without a NAT.
    pub fn nat_owner(
        &mut self,
        external: Ipv4Addr,
        port: u16,
        now: Instant,
    ) -> Option<Asked<Owner>> {
        self.ask_nat(Question::Owner { external, port }, Owner::merge, now)
    }

    /// Forwards an external port to an inside address. The subscriber with that address, if it is connected, owns the port
    /// unless the port is below the port blocks; [`ForwardRequest::subscriber`] is not used. `None` without a NAT.
    ///
    /// A port below the blocks is forwarded by all paths. If one refuses, the answer is why, and the edge ends the forwarding
    /// on the others.
    pub fn forward_port(
        &mut self,
        wish: &ForwardRequest,
        now: Instant,
    ) -> Option<Asked<Result<Forward, ForwardError>>> {
        let first = self.nat_config()?.port_first;
        let subscriber = self.subscriber_at(wish.inside).map(|key| {
            let place = key.0.index;
            (self.translator(place), place, key.to_token())
        });
        let is_low = wish.external.is_some_and(|(_, port)| port < first);
        let path = subscriber.map_or(0, |(path, ..)| path);
        let question = Question::Forward {
            on: (!is_low).then_some(path),
            subscriber,
            wish: *wish,
        };
        let asked = self.ask_nat(question, forward, now)?;
        if is_low
            && self.config.paths > 1
            && let Some(nat) = &mut self.nat
        {
            nat.forwarding.push(asked.inquiry.clone());
        }
        Some(asked)
    }

    /// Ends forwardings that one path has refused and others have not.
    pub(super) fn settle_forwards(&mut self, now: Instant) {
        let Some(nat) = &mut self.nat else { return };
        let answered = nat
            .forwarding
            .extract_if(.., |inquiry| inquiry.is_answered());
        let answered: Vec<_> = answered.filter_map(|inquiry| inquiry.all()).collect();
        for answers in answered
            .iter()
            .filter(|all| all.iter().any(Answer::is_refusal))
        {
            if let Some(done) = answers.iter().find_map(Answer::done) {
                let external = (done.external, done.external_port);
                let _ = self.unforward_port(done.protocol, external, now);
            }
        }
    }

    /// Ends the forwarding of an external port; the answer is what it was. `None` without a NAT.
    pub fn unforward_port(
        &mut self,
        protocol: Protocol,
        (external, port): (Ipv4Addr, u16),
        now: Instant,
    ) -> Option<Asked<Option<Forward>>> {
        let key: ForwardKey = (external, port, protocol);
        self.ask_nat(Question::Unforward(key), unforwarded, now)
    }

    /// The path that translates a subscriber's packets, which is chosen at the first call.
    pub(super) fn translator(&mut self, place: u32) -> u8 {
        let Some(nat) = &self.nat else { return 0 };
        if self.config.paths <= 1 {
            return 0;
        }
        if let Some(&path) = nat.homes.get(&place) {
            return path;
        }
        let shaped = self.shaped.get(&place).map(|shaped| shaped.home);
        let near = self.near(place);
        let Some(nat) = &mut self.nat else { return 0 };
        let path = shaped.unwrap_or_else(|| near_or_idlest(&nat.loads, near));
        nat.loads[usize::from(path)] += 1;
        nat.homes.insert(place, path);
        path
    }

    /// A subscriber is gone.
    pub(super) fn forget_translator(&mut self, place: u32) {
        if let Some(nat) = &mut self.nat
            && let Some(path) = nat.homes.remove(&place)
        {
            nat.loads[usize::from(path)] -= 1;
        }
    }
}

fn subscribers(answers: Vec<Answer>) -> NatSubscribers {
    let last = answers.len().saturating_sub(1);
    for (path, answer) in answers.into_iter().enumerate() {
        if let Answer::Subscribers(views, next) = answer {
            let next = match next {
                Some(cursor) => Some((path as u8, cursor)),
                None => (path < last).then_some((path as u8 + 1, 0)),
            };
            return (views, next);
        }
    }
    (Vec::new(), None)
}

/// Merges sorted lists. Each is complete unless it is as long as it could be; so is the merged one.
fn forwards(answers: Vec<Answer>) -> Vec<Forward> {
    let mut all = Vec::new();
    for answer in answers {
        if let Answer::Forwards(some, most) = answer {
            all.extend(some);
            all.sort_unstable_by_key(key);
            all.truncate(most);
        }
    }
    all
}

/// The forwarding, or the first refusal of a path.
fn forward(answers: Vec<Answer>) -> Result<Forward, ForwardError> {
    let mut last = Err(ForwardError::Nobody);
    for answer in answers {
        if let Answer::Forward(one) = answer {
            let forward = one?;
            // That of a subscriber's own path names the subscriber.
            if last.is_err() || forward.tag != 0 {
                last = Ok(forward);
            }
        }
    }
    last
}

fn unforwarded(answers: Vec<Answer>) -> Option<Forward> {
    answers.into_iter().find_map(|answer| match answer {
        Answer::Unforward(forward) => forward,
        _ => None,
    })
}
