//! Finds the subscribers that a request names, and disconnects them.

use crate::show;
use edge::access::Either::{First, Second};
use std::fmt::Display;

use crate::served::End;
use aaa::accounting::SessionId;
use edge::SubscriberKey;

use super::{Context, Work};
use crate::capture::Wanted;
use crate::client::Steps;
use crate::show::{Details, Queues, What};
use control::reply::{self, Code, Refusal};
use control::request::{CaptureSubscriber, SessionName, ShowSubscriber, SubscriberSelector};
use control::rows;

impl Context<'_> {
    /// Details of one subscriber, including one that has already disconnected.
    pub(super) fn subscriber(&self, request: &ShowSubscriber) -> Result<What, Refusal> {
        let keys = self.find(&request.of)?;
        let edge = &self.core.edge;
        let name: Box<[u8]> = match keys.first().and_then(|key| edge.subscriber(*key)) {
            Some(view) => view.name.into(),
            None => {
                let who = request.of.who.as_deref().unwrap_or_default();
                let mut ended = (0..).map_while(|n| edge.ended(n));
                if !ended.any(|ended| *ended.name == *who.as_bytes()) {
                    return Err(nobody(&request.of));
                }
                who.as_bytes().into()
            }
        };
        Ok(What::Details(Details::new(keys, name, request.history)))
    }

    /// The queues of shaped subscribers.
    pub(super) fn queue(&self, who: &SubscriberSelector) -> Result<What, Refusal> {
        let mut keys = self.find(who)?;
        if keys.is_empty() {
            return Err(self.ended(who).unwrap_or_else(|| nobody(who)));
        }
        keys.retain(|&key| self.core.edge.shape(key).is_some());
        if keys.is_empty() {
            let who = who.who.as_deref().unwrap_or("the subscriber");
            let message =
                format!("{who:?} has no queues: its packets pass without a limit of rate");
            return Err(Refusal::new(Code::Refused, message));
        }
        Ok(What::Queues(Queues::new(keys)))
    }

    /// The rules of the filter with this name.
    pub(super) fn filter(&self, name: String) -> Result<What, Refusal> {
        if self.core.edge.filters().set().find(&name).is_some() {
            return Ok(What::FilterLines(name));
        }
        let message =
            format!("there is no filter {name:?}; \"headend show filters\" lists those there are");
        Err(Refusal::new(Code::NotFound, message))
    }

    pub(super) fn begin_drop(&self, who: &SubscriberSelector) -> Result<Work, Refusal> {
        let keys = self.find(who)?;
        if keys.is_empty() {
            return Err(self.ended(who).unwrap_or_else(|| nobody(who)));
        }
        Ok(Work::Drop { keys, rows: 0 })
    }

    pub(super) fn drop_subscribers(
        &mut self,
        id: u64,
        mut keys: Vec<SubscriberKey>,
        mut rows: u64,
        steps: &mut Steps,
    ) -> Option<Work> {
        while !self.client.is_full() && steps.next() {
            let Some(key) = keys.pop() else {
                reply::end(self.client.out(), id, rows);
                return None;
            };
            rows += u64::from(self.drop_subscriber(id, key));
        }
        Some(Work::Drop { keys, rows })
    }

    /// Replies with the outcome. Returns `false` if the subscriber has disconnected since it was selected.
    fn drop_subscriber(&mut self, id: u64, key: SubscriberKey) -> bool {
        let now = self.core.now;
        let Some(view) = self.core.edge.subscriber(key) else {
            return false;
        };
        let name = String::from_utf8_lossy(view.name).into_owned();
        let ending = view.ending.map(ToString::to_string);
        let mut row = rows::Dropped {
            schema: rows::Dropped::SCHEMA,
            name: &name,
            tunnel: show::tunnel_id(view.place),
            session: show::session_id(view.place),
            address: view.address,
            up_s: view.up.map(|up| now.since(up).as_secs_f64()),
            outcome: "dropped",
            ending: ending.as_ref().map(|end| end as &dyn Display),
        };
        if !self.core.edge.drop_subscriber(key, End::Administrator, now) {
            row.outcome = "ending";
        }
        reply::row(self.client.out(), id, &row);
        true
    }

    /// Why the last session of this name or address ended, if the history has one.
    pub(super) fn ended(&self, who: &SubscriberSelector) -> Option<Refusal> {
        let text = who.who.as_deref()?;
        let address = text.parse().ok();
        let mut ended = (0..).map_while(|n| self.core.edge.ended(n));
        let last = ended.find(|ended| {
            *ended.name == *text.as_bytes() || (address.is_some() && ended.address == address)
        })?;
        let ago = self.core.now.since(last.ended).as_secs_f64();
        let reason = &last.reason;
        let message = format!(
            "{text:?} is not connected; its last session ended {ago:.1} s ago: {reason}; \
             \"headend show subscribers\" lists all"
        );
        Some(Refusal::new(Code::NotFound, message))
    }

    pub(super) fn capture(
        &mut self,
        id: u64,
        request: &CaptureSubscriber,
    ) -> Result<Option<Work>, Refusal> {
        let keys = self.find(&request.of)?;
        let name = request.of.who.as_deref().map(str::as_bytes);
        if keys.is_empty() && !request.wait {
            return Err(nobody(&request.of));
        }
        let wanted = Wanted {
            keys,
            name,
            count: request.count,
            snap: request.snap,
        };
        let out = self.client.out();
        self.captures
            .begin((self.key, id), wanted, out, self.core)?;
        Ok(None)
    }

    pub(super) fn stop_capture(&mut self, id: u64, capture: u64) -> Result<Option<Work>, Refusal> {
        let out = self.client.out();
        if !self.captures.stop(self.key, capture, out, self.core) {
            let message = format!("request {capture} started no capture, or the capture has ended");
            return Err(Refusal::new(Code::NotFound, message));
        }
        reply::done(self.client.out(), id, None);
        Ok(None)
    }

    /// All subscribers that match `who`. Empty if no connected subscriber has the name or address.
    pub(super) fn find(&self, who: &SubscriberSelector) -> Result<Vec<SubscriberKey>, Refusal> {
        let edge = &self.core.edge;
        match (&who.who, who.tunnel, who.session) {
            (Some(text), None, None) => {
                let mut keys: Vec<_> = edge.find(text.as_bytes()).collect();
                if let (true, Ok(address)) = (keys.is_empty(), text.parse()) {
                    keys.extend(edge.at_address(address));
                }
                if let (true, Ok(account)) = (keys.is_empty(), text.parse::<SessionId>()) {
                    let is_of_now = self.core.authority.account(account.number);
                    let found = edge.at_account(account.number);
                    keys.extend(found.filter(|_| is_of_now.as_deref() == Some(text)));
                }
                Ok(keys)
            }
            (None, Some(tunnel), Some(session)) => {
                let version = who.version;
                let key = match tunnel {
                    0 => Second(self.pppoe_session(session)?),
                    tunnel => First(self.session(SessionName {
                        tunnel,
                        session,
                        version,
                    })?),
                };
                let view = edge.subscriber_in(key).ok_or_else(|| {
                    let message = format!(
                        "session {session} of tunnel {tunnel} does not end here: it has no subscriber"
                    );
                    Refusal::new(Code::NotFound, message)
                })?;
                Ok(vec![view.key])
            }
            _ => {
                let message = "say who by a name, an address or an account (\"who\"), or by \"tunnel\" and \"session\"";
                Err(Refusal::new(Code::BadRequest, message))
            }
        }
    }
}

impl Context<'_> {
    /// The PPPoE session with this id, if only one has it.
    fn pppoe_session(&self, id: u32) -> Result<pppoe::SessionKey, Refusal> {
        let sessions = self.core.edge.endpoint().pppoe().sessions();
        let mut found = sessions.filter(|view| u32::from(view.id) == id && id != 0);
        match (found.next(), found.next()) {
            (Some(view), None) => Ok(view.key),
            (None, _) => Err(Refusal::new(
                Code::NotFound,
                format!("no PPPoE session has the id {id}"),
            )),
            (Some(_), Some(_)) => Err(Refusal::new(
                Code::Refused,
                format!("several PPPoE sessions have the id {id}; name the subscriber"),
            )),
        }
    }
}

pub(super) fn nobody(who: &SubscriberSelector) -> Refusal {
    let who = who.who.as_deref().unwrap_or_default();
    let message = format!(
        "no subscriber {who:?} is connected, and none is in the history; \"headend show subscribers\" lists all"
    );
    Refusal::new(Code::NotFound, message)
}
