//! Rows of the queues of shaped subscribers.

use core::net::{IpAddr, Ipv6Addr};

use base::Duration;
use control::rows;
use edge::{Look, SubscriberKey};
use hqos::View;

use super::{Rows, Step, micros};
use crate::core::Core;

/// Hosts that are listed in each direction.
const HOSTS_MAX: usize = 64;

/// A question about the queues of one subscriber. They may be on another thread, which answers within a turn or two.
#[derive(Default)]
pub(super) struct Question(Option<Look>);

/// What is known of a subscriber's queues.
pub(super) enum Answer {
    /// It has none, or has ended since it was selected.
    Nothing,
    /// Ask again.
    Later,
    /// The queues down and up.
    Views(Box<[View; 2]>),
}

impl Question {
    pub(super) fn ask(&mut self, core: &mut Core, key: SubscriberKey, hosts_max: usize) -> Answer {
        let edge = &mut core.edge;
        let Some(look) = self.0.take().or_else(|| edge.look(key, hosts_max)) else {
            return Answer::Nothing;
        };
        if let Some(views) = look.take() {
            return Answer::Views(Box::new(views));
        }
        self.0 = (!edge.has_seen(&look)).then_some(look);
        Answer::Later
    }
}

/// The queues of these subscribers.
pub(crate) struct Queues {
    keys: Vec<SubscriberKey>,
    question: Question,
}

impl Queues {
    pub(crate) fn new(keys: Vec<SubscriberKey>) -> Self {
        Self {
            keys,
            question: Question::default(),
        }
    }

    /// The queues of the subscriber at the cursor, down and up, then the hosts in them.
    pub(super) fn next(&mut self, core: &mut Core, cursor: u32, out: &mut Rows) -> Step {
        let Some(&key) = self.keys.get(cursor as usize) else {
            return Step::End;
        };
        let views = match self.question.ask(core, key, HOSTS_MAX) {
            Answer::Later => return Step::From(cursor),
            Answer::Nothing => return Step::From(cursor + 1),
            Answer::Views(views) => views,
        };
        if let Some(view) = core.edge.subscriber(key) {
            let shard = core.edge.home(key).unwrap_or(0);
            let name = String::from_utf8_lossy(view.name);
            let both = [("down", &views[0]), ("up", &views[1])];
            both.iter()
                .for_each(|(way, view)| queue((&name, way), view, shard, out));
            both.iter()
                .for_each(|(way, view)| hosts(&name, way, view, out));
        }
        Step::From(cursor + 1)
    }
}

fn queue((subscriber, direction): (&str, &str), view: &View, shard: usize, out: &mut Rows) {
    let micros = |delay: Option<Duration>| delay.map(micros);
    out.push(&rows::Queue {
        schema: rows::Queue::SCHEMA,
        subscriber,
        direction,
        rate_bps: (view.bps > 0).then_some(view.bps),
        template: &view.template,
        links: &view.nodes.join(","),
        shard,
        backlog_packets: view.packets,
        backlog_octets: view.octets,
        passed: view.counts.passed,
        waited: view.counts.queued,
        octets: view.counts.octets,
        dropped: view.counts.dropped,
        marked: view.counts.marked,
        delay_p50_us: micros(view.p50),
        delay_p99_us: micros(view.p99),
    });
}

fn hosts(subscriber: &str, direction: &str, view: &View, out: &mut Rows) {
    for host in &view.hosts {
        let address = IpAddr::V6(Ipv6Addr::from(host.address)).to_canonical();
        out.push(&rows::QueueHost {
            schema: rows::QueueHost::SCHEMA,
            subscriber,
            direction,
            host: (!address.is_unspecified()).then_some(address),
            flows: host.flows,
            backlog_packets: host.packets,
            backlog_octets: host.octets,
        });
    }
}
