//! Subscribers' queues: each source's settings come to one shape, at admission, by command and after a reload.

use std::sync::Arc;

use aaa::queue::Way;
use aaa::{Address, Profile, Queue};
use base::Instant;
use hqos::Shape;
use hqos::spec::Rates;

use crate::access::Access;
use crate::edge::Edge;
use crate::event::Event;
use crate::key::SubscriberKey;
use crate::queue::{LinkUse, QueueFault, Setting, Source};
use crate::subscriber::{Phase, Queueing};

impl<A: Access> Edge<A> {
    /// What commands say about a subscriber's queues after one more, and what all sources come to then.
    ///
    /// # Errors
    /// What this command cannot change.
    pub(crate) fn check_queue(
        &self,
        index: u32,
        queue: &Queue,
        reset: bool,
    ) -> Result<(Queue, Option<Setting>), QueueFault> {
        let queueing = self.at(index).queue.as_deref();
        let own = queueing.filter(|_| !reset).map(|one| one.own.clone());
        let mut own = own.unwrap_or_default();
        own.replace_with(queue);
        let (after, faults) = self.resolved(index, &own);
        match faults.into_iter().find(|fault| is_of(fault, queue)) {
            Some(fault) => Err(self.with_promises(fault)),
            None => Ok((own, after)),
        }
    }

    /// Gives an admitted subscriber the queues that its sources come to.
    ///
    /// # Errors
    /// What cannot be applied, if the configuration is strict about it. Otherwise the owner gets an event.
    pub(crate) fn queue_admitted(&mut self, index: u32, now: Instant) -> Result<(), String> {
        let own = self.at(index).queue.as_deref();
        let own = own.map_or_else(Queue::default, |queueing| queueing.own.clone());
        let (setting, faults) = self.resolved(index, &own);
        if self.config.queues.defaults().strict && !faults.is_empty() {
            return Err(texts(&faults).join("; "));
        }
        self.put_setting(index, own, setting, now);
        self.report_queue_faults(index, texts(&faults));
        Ok(())
    }

    /// Resolves a subscriber's queues again, because the configuration changed.
    pub(crate) fn queue_again(&mut self, index: u32, now: Instant) {
        let one = self.at(index);
        let is_admitted = matches!(one.phase(), Phase::Networks | Phase::Up);
        if one.is_client || !(is_admitted || one.queue.is_some()) {
            return;
        }
        let own = one.queue.as_deref();
        let own = own.map_or_else(Queue::default, |queueing| queueing.own.clone());
        let (setting, faults) = self.resolved(index, &own);
        self.put_setting(index, own, setting, now);
        self.report_queue_faults(index, texts(&faults));
    }

    /// Takes a removed subscriber off its link.
    pub(crate) fn queue_gone(&mut self, queueing: Option<&Queueing>) {
        if let Some(setting) = queueing.and_then(|one| one.setting.as_ref()) {
            self.count_on_link(setting, false);
        }
    }

    /// A Filter-Id that names no filter may name a template or a garden. `queue:NAME` and `garden:NAME` never name a
    /// filter.
    pub(crate) fn names_of_filter_id(&self, profile: &mut Profile) {
        let Some(name) = profile.filter.as_deref() else {
            return;
        };
        if self.path.filters.set().find(name).is_some() {
            return;
        }
        if !self.config.queues.has_template(name) {
            if self.path.gardens.find(name).is_some() {
                let name = profile.filter.take();
                profile.garden = profile.garden.take().or(name);
            }
            return;
        }
        if profile.queue.templates == [None, None] {
            let queue = core::mem::take(&mut profile.queue);
            profile.queue = queue.with_template(Some(name));
        }
        profile.filter = None;
    }

    /// What a subscriber's sources come to, with `own` from commands.
    fn resolved(&self, index: u32, own: &Queue) -> (Option<Setting>, Vec<QueueFault>) {
        let one = self.at(index);
        let queues = &self.config.queues;
        let defaults = queues.defaults();
        let none = Queue::default();
        let profile = one.profile.as_deref();
        let of_profile = profile.map_or(&none, |profile| &profile.queue);
        let source = if one.is_local {
            Source::User
        } else {
            Source::Radius
        };
        let pool = self.pool_of(profile);
        let pool = pool.and_then(|name| defaults.pools.get(name));
        let has_lines = !defaults.lines.is_empty();
        let peer = has_lines.then(|| self.endpoint.peer(one.place)).flatten();
        let line = peer.as_ref().and_then(|peer| queues.line(peer));
        queues.resolve(&[
            (Source::Command, own),
            (source, of_profile),
            (Source::Pool, pool.unwrap_or(&none)),
            (Source::Line, line.unwrap_or(&none)),
            (Source::Default, &defaults.all),
        ])
    }

    /// The pool that a subscriber's address is of; `None` for one with a fixed address.
    fn pool_of<'a>(&'a self, profile: Option<&'a Profile>) -> Option<&'a str> {
        if self.config.queues.defaults().pools.is_empty() {
            return None;
        }
        let named = profile.and_then(|profile| profile.pool.as_deref());
        match profile.map_or(Address::FromPool, |profile| profile.address) {
            Address::Fixed(_) => None,
            Address::FromPool | Address::ItsOwn => {
                named.or_else(|| self.pools.views().next().map(|pool| pool.name))
            }
        }
    }

    /// Keeps a subscriber's setting, and gives its packets the queues that it needs.
    pub(crate) fn put_setting(
        &mut self,
        index: u32,
        own: Queue,
        setting: Option<Setting>,
        now: Instant,
    ) {
        let before = self.at_mut(index).queue.take();
        let before = before.and_then(|one| one.setting);
        if let Some(before) = &before {
            self.count_on_link(before, false);
        }
        let needed = |setting: &Option<Setting>| setting.as_ref().and_then(Setting::needed);
        let (had, needed) = (needed(&before), needed(&setting));
        // Without queues the packets in them would be lost. So the queues stay, without a limit.
        let needed = needed.or(had.map(|had| Shape {
            rates: Rates::default(),
            node: None,
            ..had
        }));
        if needed.is_some() {
            let key = SubscriberKey(self.at(index).key);
            if let Err(fault) = self.set_shape(key, needed, now) {
                self.report_queue_faults(index, vec![fault.to_string()]);
            }
        }
        if let Some(setting) = &setting {
            self.count_on_link(setting, true);
        }
        if setting.is_some() || !own.is_empty() {
            self.at_mut(index).queue = Some(Box::new(Queueing { own, setting }));
        }
    }

    fn count_on_link(&mut self, setting: &Setting, comes: bool) {
        let Some(link) = &setting.link else { return };
        let one = self.on_links.entry(Arc::clone(link));
        let one = one.or_insert_with(LinkUse::default);
        for way in Way::ALL {
            let sum = &mut one.rates_bps[way as usize];
            let rate = setting.rate_bps(way).unwrap_or(0);
            *sum = if comes { *sum + rate } else { *sum - rate };
        }
        if comes {
            one.subscribers += 1;
            return;
        }
        one.subscribers -= 1;
        if one.subscribers == 0 {
            self.on_links.remove(link);
        }
    }

    /// Adds to a rate above that of a link who else uses the link.
    fn with_promises(&self, fault: QueueFault) -> QueueFault {
        match fault {
            QueueFault::OverLink(mut over) => {
                let queues = &self.config.queues;
                over.promised = Some(queues.promised(&over.link, over.way, &self.on_links));
                QueueFault::OverLink(over)
            }
            other => other,
        }
    }

    /// Counts and reports what could not be applied.
    pub(crate) fn report_queue_faults(&mut self, index: u32, faults: Vec<String>) {
        if faults.is_empty() {
            return;
        }
        self.counters.queue_faults += faults.len() as u64;
        self.events.push_back(Event::QueueFaults {
            subscriber: SubscriberKey(self.at(index).key),
            faults: faults.join("; "),
        });
    }
}

/// Whether a command caused the fault, rather than another source.
fn is_of(fault: &QueueFault, command: &Queue) -> bool {
    match fault {
        QueueFault::NoTemplate(_, source) | QueueFault::NoLink(_, source) => {
            *source == Source::Command
        }
        QueueFault::OverLink(over) => {
            let rate = command.rates_bps[over.way as usize].is_some();
            rate || command.link.is_some() || command.templates != [None, None]
        }
    }
}

fn texts(faults: &[QueueFault]) -> Vec<String> {
    faults.iter().map(ToString::to_string).collect()
}
