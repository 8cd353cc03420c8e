//! Changes the rates, the template or the link of one subscriber: `session.set`.

use aaa::Queue;
use aaa::queue::{self, BitsPerSecond, RATE_MAX, RATE_MIN};
use edge::{QueueFault, QueueRefusal};

use super::subscribers::nobody;
use super::{Context, Work};
use crate::show;
use control::reply::{self, Code, Refusal};
use control::request::SessionSet;
use control::rows;

impl Context<'_> {
    /// Changes the queues of the one subscriber that a request names, and replies with them before and after.
    pub(super) fn set_queue(&mut self, id: u64, set: &SessionSet) -> Result<Option<Work>, Refusal> {
        let queue = wanted(set)?;
        let who = set.of.who.as_deref().unwrap_or_default();
        if set.of.session.is_none() && (who.is_empty() || who.contains(['*', '?'])) {
            let message = "name one subscriber; there is no wildcard";
            return Err(Refusal::new(Code::BadRequest, message));
        }
        let keys = self.find(&set.of)?;
        let key = match *keys.as_slice() {
            [key] => key,
            [] => return Err(self.ended(&set.of).unwrap_or_else(|| nobody(&set.of))),
            _ => {
                let message = format!(
                    "{} sessions have the name {who:?}; name one by its address, or by --tunnel and --session",
                    keys.len()
                );
                return Err(Refusal::new(Code::Refused, message));
            }
        };
        let now = self.core.now;
        let edge = &mut self.core.edge;
        let change = edge.set_queue(key, &queue, set.reset, now).map_err(|why| {
            let queues = &edge.config().queues;
            refusal(&why, queues)
        })?;
        let Some(view) = edge.subscriber(key) else {
            return Err(nobody(&set.of));
        };
        let name = String::from_utf8_lossy(view.name).into_owned();
        tracing::info!(subscriber = %name, "headend session set: queues changed");
        let row = rows::SubscriberSet {
            schema: rows::SubscriberSet::SCHEMA,
            name: &name,
            tunnel: show::tunnel_id(view.place),
            session: show::session_id(view.place),
            before: show::queue(change.before.as_ref()),
            after: show::queue(change.after.as_ref()),
        };
        reply::row(self.client.out(), id, &row);
        reply::end(self.client.out(), id, 1);
        Ok(None)
    }
}

/// What a request sets.
fn wanted(set: &SessionSet) -> Result<Queue, Refusal> {
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
    let queue = Queue {
        rates_bps: [set.rate_down_bps, set.rate_up_bps],
        link: name("link", &set.link)?,
        ..Queue::default().with_template(template.as_deref())
    };
    if queue.is_empty() && !set.reset {
        let message = "nothing to set: give rate_down_bps, rate_up_bps, template, link or reset";
        return Err(bad(message.to_owned()));
    }
    Ok(queue)
}

/// Why nothing was set, with the names that there are.
fn refusal(why: &QueueRefusal, queues: &edge::Queues) -> Refusal {
    let plan = queues.plan();
    let (code, names): (Code, Vec<&str>) = match why {
        QueueRefusal::Fault(QueueFault::NoTemplate(..)) => {
            let names = plan.templates.iter().map(|one| &*one.name);
            (Code::NotFound, names.collect())
        }
        QueueRefusal::Fault(QueueFault::NoLink(..)) => {
            let names = plan.nodes.iter().map(|one| &*one.name);
            (Code::NotFound, names.collect())
        }
        _ => return Refusal::new(Code::Refused, why.to_string()),
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
    Refusal::new(code, format!("{why}; {all}"))
}

/// Names that a refusal lists.
const NAMES_MAX: usize = 8;
