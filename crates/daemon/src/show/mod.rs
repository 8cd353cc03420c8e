//! Produces the rows of a `show` command, a bounded number per turn. Between turns it keeps only a position in the
//! endpoint's tables.

mod accounts;
mod filters;
mod history;
mod kernel;
mod nat;
mod now;
pub(super) mod past;
mod pools;
mod pppoe;
mod queues;
mod radius;
mod shards;
mod sorted;
mod subscribers;
mod tables;
mod worst;

use base::Duration;
use bgp::PeerId;

use super::client::{Client, Steps};
use super::core::Core;
use control::reply::{self, Rows};
use control::request::SubscriberFilter;
pub(super) use history::HistoryShow;
pub(super) use nat::{
    Forwards as NatForwards, Subscribers as NatSubscribers, Totals as NatTotals, push_forward,
    who as nat_who,
};
use peering::show::BgpShow;
pub(super) use queues::Queues;
pub(super) use sorted::Sorted;
pub(super) use subscribers::{Details, policy, queue, session_id, tunnel_id};
pub(super) use worst::Worst;

/// A `show` command in progress, with its position.
pub(super) struct Show {
    what: What,
    cursor: u32,
    rows: u64,
}

/// The table that is shown.
pub(super) enum What {
    Tunnels,
    Sessions,
    Peers,
    Subscribers(SubscriberFilter),
    /// The first subscribers in an order.
    Sorted(Box<Sorted>),
    /// The subscribers with the most of something.
    Worst(Worst),
    /// Subscribers in detail, then ended sessions of their name.
    Details(Details),
    EndedTunnels,
    EndedSessions,
    /// Ended sessions of one name, or of all; at most `left` more rows.
    EndedSubscribers {
        name: Option<Box<[u8]>>,
        left: u32,
    },
    /// What the kernel has of what we want.
    Kernel,
    /// The interfaces of PPPoE.
    Pppoe,
    /// The translation of addresses.
    Nat(nat::Totals),
    /// Its subscribers.
    NatSubscribers(nat::Subscribers),
    /// The ports that it forwards.
    NatForwards(nat::Forwards),
    /// The state of the whole daemon.
    Now,
    /// What was recorded of the last day.
    History(HistoryShow),
    Pools,
    Radius,
    Filters,
    /// The queues of these subscribers.
    Queues(Queues),
    /// The rules of the filter with this name.
    FilterLines(String),
    Counters,
    Waits,
    Descriptors,
    Timers,
    Cpu,
    Shards,
    Server {
        clients: usize,
    },
    /// BGP routes and peers. `None` once all rows are written.
    Bgp(Option<BgpShow>),
}

/// Where to continue after a step.
enum Step {
    /// Continue from here.
    From(u32),
    /// Continue with the next part.
    Then(What),
    /// Continue from the same place in another turn: other threads have to answer.
    Wait,
    End,
}

impl Show {
    /// From the first row.
    pub(super) fn new(what: What) -> Self {
        Self {
            what,
            cursor: 0,
            rows: 0,
        }
    }

    /// Writes rows until the table ends, `steps` are used up, or the client's buffer is full. Returns itself if rows
    /// remain.
    pub(super) fn work<J>(
        mut self,
        id: u64,
        client: &mut Client<J>,
        core: &mut Core,
        steps: &mut Steps,
    ) -> Option<Self> {
        while !client.is_full() && steps.next() {
            let mut out = Rows::new(client.out(), id);
            let step = self.what.step(self.cursor, core, &mut out);
            self.rows += out.count;
            match step {
                Step::From(cursor) => self.cursor = cursor,
                Step::Then(what) => (self.what, self.cursor) = (what, 0),
                Step::Wait => steps.end(),
                Step::End => {
                    reply::end(client.out(), id, self.rows);
                    return None;
                }
            }
        }
        Some(self)
    }
}

impl What {
    // long: one short arm for each table
    fn step(&mut self, cursor: u32, core: &mut Core, out: &mut Rows) -> Step {
        if let What::Bgp(show) = self {
            return bgp(show.take(), core, out);
        }
        if let What::Now = self {
            out.push(&now::row(core));
            return Step::End;
        }
        if let What::Sorted(sorted) = self {
            return sorted.step(core, cursor, out);
        }
        if let What::Queues(queues) = self {
            return queues.next(core, cursor, out);
        }
        if let What::Details(details) = self {
            return details.next(core, cursor, out);
        }
        match self {
            What::Nat(totals) => return totals.next(core, out),
            What::NatSubscribers(subscribers) => return subscribers.next(core, out),
            What::NatForwards(forwards) => return forwards.next(core, out),
            _ => {}
        }
        let core = &*core;
        let endpoint = core.edge.endpoint().l2tp();
        match self {
            What::Tunnels => after(endpoint.next_tunnel(cursor), |view| {
                tables::tunnel(&view, core.now, out);
            }),
            What::Sessions => after(endpoint.next_session(cursor), |view| {
                tables::session(&view, core, out);
            }),
            What::Peers => after(endpoint.next_peer(cursor), |view| {
                tables::peer(&view, out);
            }),
            What::Subscribers(filter) => subscribers::next(core, filter, cursor, out),
            What::Worst(worst) => worst.step(core, cursor, out),
            What::EndedTunnels => tables::ended_tunnel(endpoint, cursor, core.now, out),
            What::EndedSessions => tables::ended_session(endpoint, cursor, core.now, out),
            What::EndedSubscribers { left: 0, .. } => Step::End,
            What::EndedSubscribers { name, left } => {
                let before = out.count;
                let step = subscribers::ended(core, name.as_deref(), cursor, out);
                *left -= u32::from(out.count > before);
                step
            }
            What::Radius => radius::next(core, cursor, out),
            What::Filters => filters::next(core, cursor, out),
            What::FilterLines(name) => filters::lines(core, name, cursor, out),
            What::History(show) => show.step(core, out),
            What::Pools => pools::next(core, cursor, out),
            What::Counters => {
                tables::counters(core, out);
                Step::End
            }
            What::Waits => {
                accounts::waits(core, out);
                Step::Then(What::Descriptors)
            }
            What::Descriptors => accounts::descriptors(core, cursor, out),
            What::Timers => {
                accounts::timers(core, out);
                Step::Then(What::Bgp(Some(BgpShow::Holds(PeerId(0)))))
            }
            What::Cpu => {
                accounts::cpu(core, out);
                Step::End
            }
            What::Shards => {
                shards::rows(core, out);
                Step::End
            }
            What::Kernel => {
                kernel::rows(core, out);
                Step::End
            }
            What::Pppoe => {
                pppoe::rows(core, out);
                Step::End
            }
            What::Server { clients } => {
                accounts::server(core, *clients, out);
                Step::End
            }
            // Handled above.
            What::Bgp(_)
            | What::Now
            | What::Sorted(_)
            | What::Queues(_)
            | What::Details(_)
            | What::Nat(_)
            | What::NatSubscribers(_)
            | What::NatForwards(_) => Step::End,
        }
    }
}

/// A step of the speaker's tables.
fn bgp(show: Option<BgpShow>, core: &mut Core, out: &mut Rows) -> Step {
    let Some((show, routes)) = show.zip(core.routes.as_deref_mut()) else {
        return Step::End;
    };
    let aside = routes.aside();
    match show.step(&mut routes.speaker, aside, core.now, out) {
        Some(left) => Step::Then(What::Bgp(Some(left))),
        None => Step::End,
    }
}

/// Writes the row of the next entry, if there is one.
fn after<T>(next: Option<(u32, T)>, write: impl FnOnce(T)) -> Step {
    match next {
        Some((next, view)) => {
            write(view);
            Step::From(next)
        }
        None => Step::End,
    }
}

fn seconds(span: Duration) -> f64 {
    rounded(span.as_secs_f64())
}

fn micros(span: Duration) -> f64 {
    rounded(span.as_nanos() as f64 / 1000.0)
}

/// Rounds to three decimals.
fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}
