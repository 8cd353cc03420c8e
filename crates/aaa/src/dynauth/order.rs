//! What a request asks for, beside the sessions that it is about. All of its attributes are mandatory (RFC 5176, section
//! 2.3): one that cannot be honoured refuses the whole request.

use base::Duration;
use wire::radius::attribute::{
    ACCT_INTERIM_INTERVAL, ACCT_TERMINATE_CAUSE, CLASS, EVENT_TIMESTAMP, FILTER_ID,
    FRAMED_IPV6_ROUTE, FRAMED_PROTOCOL, FRAMED_ROUTE, IDLE_TIMEOUT, MESSAGE_AUTHENTICATOR,
    PROXY_STATE, REPLY_MESSAGE, SERVICE_TYPE, SESSION_TIMEOUT, STATE, VENDOR_SPECIFIC,
    framed_protocol, service,
};
use wire::radius::{Attribute, Packet, code};

use super::read::{identify, put};
use super::{Cause, DynauthConfig, Selection};
use crate::Change;
use crate::radius::accept::{CLASS_OCTETS_MAX, INTERIM_INTERVAL_MIN};
use crate::radius::queue::Reader;
use crate::radius::route::parse_route;
use crate::users::ROUTES_MAX;

/// What the owner is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// End the sessions (section 2.1).
    Disconnect {
        /// Class attributes for the sessions' Stop records (section 3.6, note 4).
        class: Vec<Box<[u8]>>,
    },
    /// Change the sessions: all of them, or none (section 2.2).
    Change(Box<Change>),
}

/// Reads a request.
///
/// # Errors
/// The Error-Cause of the NAK.
pub(super) fn read(
    packet: &Packet<'_>,
    config: &DynauthConfig,
) -> Result<(Selection, Order), Cause> {
    let mut selection = Selection::default();
    let order = match packet.code() {
        code::COA_REQUEST => read_change(packet, config, &mut selection)?,
        _ => read_disconnect(packet, config, &mut selection)?,
    };
    match selection.is_empty() {
        true => Err(Cause::MissingAttribute),
        false => Ok((selection, order)),
    }
}

fn read_disconnect(
    packet: &Packet<'_>,
    config: &DynauthConfig,
    selection: &mut Selection,
) -> Result<Order, Cause> {
    let mut class = Vec::new();
    for attribute in packet.attributes() {
        if identify(attribute, &config.nas, selection)? {
            continue;
        }
        match attribute.kind {
            CLASS => class.push(attribute.value.into()),
            EVENT_TIMESTAMP
            | MESSAGE_AUTHENTICATOR
            | PROXY_STATE
            | REPLY_MESSAGE
            | ACCT_TERMINATE_CAUSE => {}
            _ => return Err(Cause::UnsupportedAttribute),
        }
    }
    Ok(Order::Disconnect { class })
}

/// The attributes of a CoA-Request that are not about identification.
#[derive(Default)]
struct Draft {
    change: Change,
    service: Option<u32>,
    protocol: Option<u32>,
    has_state: bool,
    /// Class octets so far.
    class_octets: usize,
    /// Whether an attribute would change something.
    changes: bool,
}

fn read_change(
    packet: &Packet<'_>,
    config: &DynauthConfig,
    selection: &mut Selection,
) -> Result<Order, Cause> {
    let mut draft = Draft::default();
    let mut queue = Reader::new(config.queue);
    for attribute in packet.attributes() {
        if !identify(attribute, &config.nas, selection)? {
            draft.take(attribute, &mut queue)?;
        }
    }
    draft.check_service()?;
    draft.change.queue = queue.finish();
    draft.change.garden = queue.garden.take();
    if !queue.left_out.is_empty() {
        return Err(Cause::InvalidValue);
    }
    match draft.changes {
        true => Ok(Order::Change(Box::new(draft.change))),
        false => Err(Cause::MissingAttribute),
    }
}

impl Draft {
    fn take(&mut self, attribute: Attribute<'_>, queue: &mut Reader) -> Result<(), Cause> {
        let change = &mut self.change;
        match attribute.kind {
            SERVICE_TYPE => return put(&mut self.service, attribute.integer()),
            FRAMED_PROTOCOL => return put(&mut self.protocol, attribute.integer()),
            STATE if self.has_state => return Err(Cause::InvalidRequest),
            STATE => {
                self.has_state = true;
                return Ok(());
            }
            EVENT_TIMESTAMP | MESSAGE_AUTHENTICATOR | PROXY_STATE | REPLY_MESSAGE => return Ok(()),
            FILTER_ID => {
                let text = attribute.text().filter(|text| !text.is_empty());
                let text = text.ok_or(Cause::InvalidRequest)?;
                if !queue.filter_id(text) {
                    // A subscriber has only one filter.
                    put(&mut change.filter, Some(text.into())).map_err(|_| Cause::InvalidValue)?;
                }
            }
            VENDOR_SPECIFIC => {
                if queue.vendor_specific(attribute.value) > 0 {
                    return Err(Cause::UnsupportedAttribute);
                }
            }
            FRAMED_ROUTE | FRAMED_IPV6_ROUTE => {
                let text = attribute.text().ok_or(Cause::InvalidRequest)?;
                let network = parse_route(text).ok_or(Cause::InvalidValue)?;
                change.route(network);
                if change.routes.iter().flatten().map(Vec::len).sum::<usize>() > ROUTES_MAX {
                    return Err(Cause::Unavailable);
                }
            }
            SESSION_TIMEOUT => put(&mut change.session_timeout, seconds(attribute))?,
            IDLE_TIMEOUT => put(&mut change.idle_timeout, seconds(attribute))?,
            ACCT_INTERIM_INTERVAL => {
                let interval = seconds(attribute);
                let raised = interval.map(|interval| match interval {
                    Duration::ZERO => interval,
                    interval => interval.max(INTERIM_INTERVAL_MIN),
                });
                put(&mut change.interim_interval, raised)?;
            }
            CLASS => {
                self.class_octets += attribute.value.len() + 2;
                if self.class_octets > CLASS_OCTETS_MAX {
                    return Err(Cause::Unavailable);
                }
                let class = change.class.get_or_insert_default();
                class.push(attribute.value.into());
            }
            _ => return Err(Cause::UnsupportedAttribute),
        }
        self.changes = true;
        Ok(())
    }

    /// Checks Service-Type and Framed-Protocol. "Authorize Only" is refused as section 3.2 requires: for what is wrong
    /// with the request, or else because it is not supported.
    fn check_service(&self) -> Result<(), Cause> {
        match self.service {
            Some(service::AUTHORIZE_ONLY) if !self.has_state => {
                return Err(Cause::MissingAttribute);
            }
            Some(service::AUTHORIZE_ONLY) if self.changes || self.protocol.is_some() => {
                return Err(Cause::UnsupportedAttribute);
            }
            None | Some(service::FRAMED) => {}
            Some(_) => return Err(Cause::UnsupportedService),
        }
        match self.protocol {
            None | Some(framed_protocol::PPP) => Ok(()),
            Some(_) => Err(Cause::InvalidValue),
        }
    }
}

fn seconds(attribute: Attribute<'_>) -> Option<Duration> {
    let seconds = attribute.integer()?;
    Some(Duration::from_secs(u64::from(seconds)))
}
