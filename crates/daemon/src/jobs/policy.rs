//! Changes one connected subscriber: `session.set`.

use aaa::queue::{self, BitsPerSecond, RATE_MAX, RATE_MIN};
use aaa::{Change, Prefix, Queue, Walled};
use base::Duration;
use edge::{ChangeRefusal, QueueFault, SubscriberKey};

use super::subscribers::nobody;
use super::{Context, Work};
use crate::authority::note_change;
use crate::served::Edge;
use crate::show;
use control::reply::{self, Code, Refusal};
use control::request::SessionSet;
use control::rows;

/// The shortest interval of interim records (RFC 2869, section 5.16), in seconds.
const INTERIM_S_MIN: u32 = 60;

impl Context<'_> {
    /// Changes the one subscriber that a request names, and replies with it before and after.
    pub(super) fn set_session(
        &mut self,
        id: u64,
        set: &SessionSet,
    ) -> Result<Option<Work>, Refusal> {
        let change = wanted(set)?;
        let key = self.one(set)?;
        let gone = || nobody(&set.of);
        let view = self.core.edge.subscriber(key).ok_or_else(gone)?;
        let before = view.queue.cloned();
        let policy = show::policy(self.core, &view);
        let (filter, garden) = (
            policy.filter.map(str::to_owned),
            policy.garden.map(str::to_owned),
        );
        let policy_before = rows::SubscriberPolicy {
            filter: filter.as_deref(),
            garden: garden.as_deref(),
            ..policy
        };
        let now = self.core.now;
        let changed = self.core.edge.change_sessions(&[key], &change, now);
        let core = &self.core;
        let account = |number| core.authority.account(number);
        let outcome = (&change, changed.as_ref().err());
        note_change(("control", None), &[key], outcome, &core.edge, account);
        changed.map_err(|why| refusal(&why, &self.core.edge))?;
        let view = self.core.edge.subscriber(key).ok_or_else(gone)?;
        let name = String::from_utf8_lossy(view.name).into_owned();
        tracing::info!(subscriber = %name, "headend session set: changed");
        let row = rows::SubscriberSet {
            schema: rows::SubscriberSet::SCHEMA,
            name: &name,
            tunnel: show::tunnel_id(view.place),
            session: show::session_id(view.place),
            before: show::queue(before.as_ref()),
            after: show::queue(view.queue),
            policy_before,
            policy_after: show::policy(self.core, &view),
        };
        reply::row(self.client.out(), id, &row);
        reply::end(self.client.out(), id, 1);
        Ok(None)
    }

    /// The one subscriber that a request names.
    fn one(&self, set: &SessionSet) -> Result<SubscriberKey, Refusal> {
        let who = set.of.who.as_deref().unwrap_or_default();
        if set.of.session.is_none() && (who.is_empty() || who.contains(['*', '?'])) {
            let message = "name one subscriber; there is no wildcard";
            return Err(Refusal::new(Code::BadRequest, message));
        }
        let keys = self.find(&set.of)?;
        match *keys.as_slice() {
            [key] => Ok(key),
            [] => Err(self.ended(&set.of).unwrap_or_else(|| nobody(&set.of))),
            _ => {
                let message = format!(
                    "{} sessions have the name {who:?}; name one by its address, by its account, or by --tunnel and --session",
                    keys.len()
                );
                Err(Refusal::new(Code::Refused, message))
            }
        }
    }
}

/// What a request changes.
fn wanted(set: &SessionSet) -> Result<Change, Refusal> {
    let bad = |message: String| Refusal::new(Code::BadRequest, message);
    let garden = set.garden.as_deref().map(Walled::read).transpose();
    let seconds = |time: u32| Duration::from_secs(u64::from(time));
    if let Some(1..INTERIM_S_MIN) = set.interim_interval_s {
        let message = format!("interim_interval_s must be 0 (none), or {INTERIM_S_MIN} and more");
        return Err(bad(message));
    }
    let mut change = Change {
        filter: set.filter.as_deref().map(Into::into),
        garden: garden.map_err(|why| bad(format!("garden {why}")))?,
        queue: wanted_queue(set)?,
        reset_queue: set.reset,
        session_timeout: set.session_timeout_s.map(seconds),
        idle_timeout: set.idle_timeout_s.map(seconds),
        interim_interval: set.interim_interval_s.map(seconds),
        ..Change::default()
    };
    if let Some(routes) = &set.routes {
        if routes.is_empty() {
            change.routes = [Some(Vec::new()), Some(Vec::new())];
        }
        if routes.len() > aaa::users::ROUTES_MAX {
            let message = format!("routes has more than {}", aaa::users::ROUTES_MAX);
            return Err(bad(message));
        }
        for text in routes {
            change.route(network(text).map_err(bad)?);
        }
    }
    match change.is_empty() {
        true => Err(bad(
            "nothing to set: give rate_down_bps, rate_up_bps, template, link, reset, filter, garden, session_timeout_s, \
             idle_timeout_s, interim_interval_s or routes"
                .to_owned(),
        )),
        false => Ok(change),
    }
}

fn network(text: &str) -> Result<Prefix, String> {
    let read = || {
        let (address, length) = text.split_once('/')?;
        Prefix::new(address.parse().ok()?, length.parse().ok()?)
    };
    read().ok_or_else(|| {
        format!(
            "{text:?} is no network; write one as \"10.1.0.0/16\" or \"2001:db8:1::/48\", without bits behind its length"
        )
    })
}

/// The queues that a request sets.
fn wanted_queue(set: &SessionSet) -> Result<Queue, Refusal> {
    let bad = |message: String| Refusal::new(Code::BadRequest, message);
    for (field, rate) in [
        ("rate_down_bps", set.rate_down_bps),
        ("rate_up_bps", set.rate_up_bps),
    ] {
        if rate.is_some_and(|rate| rate != 0 && !(RATE_MIN..=RATE_MAX).contains(&rate)) {
            let (least, most) = (BitsPerSecond(RATE_MIN), BitsPerSecond(RATE_MAX));
            let message = format!("{field} must be 0 (no limit), or {least} to {most}");
            return Err(bad(message));
        }
    }
    let name = |field: &str, name: &Option<String>| {
        let read = name.as_deref().map(queue::name).transpose();
        read.map_err(|why| bad(format!("{field} {why}")))
    };
    let template = name("template", &set.template)?;
    Ok(Queue {
        rates_bps: [set.rate_down_bps, set.rate_up_bps],
        link: name("link", &set.link)?,
        ..Queue::default().with_template(template.as_deref())
    })
}

/// Why nothing was changed, with the names that there are.
fn refusal(why: &ChangeRefusal, edge: &Edge) -> Refusal {
    let config = edge.config();
    let plan = config.queues.plan();
    let names: Vec<&str> = match why {
        ChangeRefusal::Queue(QueueFault::NoTemplate(..)) => {
            plan.templates.iter().map(|one| &*one.name).collect()
        }
        ChangeRefusal::Queue(QueueFault::NoLink(..)) => {
            plan.nodes.iter().map(|one| &*one.name).collect()
        }
        ChangeRefusal::NoFilter(_) => {
            let all = edge.filters().set().iter().map(|(_, filter)| filter.name());
            let is_there = |name: &&str| edge.filters().set().find(name).is_some();
            all.filter(is_there).collect()
        }
        ChangeRefusal::NoGarden(_) => config.gardens.iter().map(|one| &*one.name).collect(),
        ChangeRefusal::Gone
        | ChangeRefusal::Switched(_)
        | ChangeRefusal::Client
        | ChangeRefusal::NotAdmitted
        | ChangeRefusal::Several
        | ChangeRefusal::Queue(QueueFault::OverLink(_))
        | ChangeRefusal::Held(_)
        | ChangeRefusal::Full => return Refusal::new(Code::Refused, why.to_string()),
    };
    let listed: Vec<&str> = names.iter().copied().take(NAMES_MAX).collect();
    let all = match (listed.len(), names.len()) {
        (0, _) => "there is none".to_owned(),
        (few, all) if few < all => {
            format!("there are {} and {} more", listed.join(", "), all - few)
        }
        (1, _) => format!("there is {}", listed[0]),
        _ => format!("there are {}", listed.join(", ")),
    };
    Refusal::new(Code::NotFound, format!("{why}; {all}"))
}

/// Names that a refusal lists.
const NAMES_MAX: usize = 8;
