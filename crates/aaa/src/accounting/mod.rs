//! The account of a subscriber (RFC 2866): what a record says, and how records get to a server in the end.
//!
//! - [`Record`]: one record, encoded once into octets that can wait anywhere, over a restart too. They hold the time
//!   of what happened (Event-Timestamp), and neither identifier nor authenticator nor secret.
//! - [`Delivery`]: which of the records that wait is sent when.
//! - [`SessionId`]: what a session's records are known by.
//!
//! Left out: Acct-Multi-Session-Id and Acct-Link-Count (multilink), and the records of tunnels themselves (RFC 2867,
//! section 3): a session's own records name its tunnel.
//!
//! Implements parts of RFC 2865, section 5.25; RFC 3162, section 2.2.

mod delivery;
mod session;

use core::net::Ipv4Addr;

use wire::radius::attribute::{
    ACCT_AUTHENTIC, ACCT_INPUT_GIGAWORDS, ACCT_INPUT_OCTETS, ACCT_INPUT_PACKETS,
    ACCT_OUTPUT_GIGAWORDS, ACCT_OUTPUT_OCTETS, ACCT_OUTPUT_PACKETS, ACCT_SESSION_ID,
    ACCT_SESSION_TIME, ACCT_STATUS_TYPE, ACCT_TERMINATE_CAUSE, CLASS, EVENT_TIMESTAMP,
    FRAMED_INTERFACE_ID, FRAMED_IP_ADDRESS, USER_NAME, authentic, status,
};
use wire::radius::{List, TooLong};

use crate::radius::{Line, Nas};

pub use delivery::{Delivery, DeliveryConfig, DeliveryEvent, DeliveryTotals, Outgoing};
pub use session::SessionId;

/// One record.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Who accounts.
    pub nas: &'a Nas,
    /// Whose account: a session's, or for Accounting-On and Accounting-Off one of their own.
    pub session: SessionId,
    /// When it happened, in seconds since 1970.
    pub at_s: u64,
    /// What happened.
    pub report: Report<'a>,
}

/// What a record reports (RFC 2866, section 5.1).
#[derive(Clone, Copy, Debug)]
pub enum Report<'a> {
    /// Accounting begins: nobody is on line. Accounting-On.
    On,
    /// Accounting ends: nobody is on line any more. Accounting-Off.
    Off,
    /// A subscriber is on line. Start.
    Start(Subscriber<'a>),
    /// It still is. Interim-Update (RFC 2869, section 2.1).
    Interim(Subscriber<'a>, Usage),
    /// It is not any more. Stop.
    Stop(Subscriber<'a>, Usage, TerminateCause),
}

/// Whom a record is about.
#[derive(Clone, Copy, Debug)]
pub struct Subscriber<'a> {
    /// The name to account for.
    pub user: &'a [u8],
    /// Where it is.
    pub line: Line<'a>,
    /// What the server said to send with each record, as it said it.
    pub class: &'a [Box<[u8]>],
    /// Its IPv4 address.
    pub address: Option<Ipv4Addr>,
    /// Its IPv6 interface identifier.
    pub interface_id: Option<[u8; 8]>,
    /// Who let it in.
    pub authentic: Authentic,
}

/// Who let a subscriber in (RFC 2866, section 5.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authentic {
    /// A RADIUS server.
    Radius,
    /// We did.
    Local,
}

/// What a subscriber used so far. Input is from it, output to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Usage {
    /// Seconds on line.
    pub time_s: u64,
    /// Octets from it.
    pub input_octets: u64,
    /// Octets to it.
    pub output_octets: u64,
    /// Packets from it.
    pub input_packets: u64,
    /// Packets to it.
    pub output_packets: u64,
}

/// Why a session ended (RFC 2866, section 5.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum TerminateCause {
    /// It wanted to.
    UserRequest = 1,
    /// The line was lost.
    LostCarrier = 2,
    /// Service is no longer there.
    LostService = 3,
    /// It was idle for too long.
    IdleTimeout = 4,
    /// It was on line for as long as it may.
    SessionTimeout = 5,
    /// An operator, or a Disconnect-Request, ended it.
    AdminReset = 6,
    /// An operator is about to restart us.
    AdminReboot = 7,
    /// Its port failed.
    PortError = 8,
    /// We failed.
    NasError = 9,
    /// We ended it for another reason.
    NasRequest = 10,
    /// We restarted without being asked to.
    NasReboot = 11,
    /// Its port is not needed any more.
    PortUnneeded = 12,
    /// Its port was needed for another.
    PortPreempted = 13,
    /// Its port is suspended.
    PortSuspended = 14,
    /// The service cannot be given.
    ServiceUnavailable = 15,
    /// It is to be called back.
    Callback = 16,
    /// Its input is wrong.
    UserError = 17,
    /// The host at the other end ended it.
    HostRequest = 18,
}

impl TerminateCause {
    /// The RFC's words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::UserRequest => "User Request",
            Self::LostCarrier => "Lost Carrier",
            Self::LostService => "Lost Service",
            Self::IdleTimeout => "Idle Timeout",
            Self::SessionTimeout => "Session Timeout",
            Self::AdminReset => "Admin Reset",
            Self::AdminReboot => "Admin Reboot",
            Self::PortError => "Port Error",
            Self::NasError => "NAS Error",
            Self::NasRequest => "NAS Request",
            Self::NasReboot => "NAS Reboot",
            Self::PortUnneeded => "Port Unneeded",
            Self::PortPreempted => "Port Preempted",
            Self::PortSuspended => "Port Suspended",
            Self::ServiceUnavailable => "Service Unavailable",
            Self::Callback => "Callback",
            Self::UserError => "User Error",
            Self::HostRequest => "Host Request",
        }
    }
}

impl Record<'_> {
    /// Appends the record's attributes to `out`: what [`crate::radius::Client::account`] takes.
    ///
    /// # Errors
    /// A name is longer than 253 octets, or the Class attributes are more than a server could have granted
    /// ([`crate::radius::accept::CLASS_OCTETS_MAX`]); `out` is as it was.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), TooLong> {
        let mut list = List::new(out);
        list.integer(ACCT_STATUS_TYPE, self.report.status())
            .integer(
                EVENT_TIMESTAMP,
                u32::try_from(self.at_s).unwrap_or(u32::MAX),
            );
        self.nas.write(&mut list);
        match self.report {
            Report::On | Report::Off => {
                list.attribute(ACCT_SESSION_ID, &self.session.text());
            }
            Report::Start(subscriber) => subscriber.write(&mut list, self.session),
            Report::Interim(subscriber, usage) => {
                subscriber.write(&mut list, self.session);
                usage.write(&mut list);
            }
            Report::Stop(subscriber, usage, cause) => {
                subscriber.write(&mut list, self.session);
                usage.write(&mut list);
                list.integer(ACCT_TERMINATE_CAUSE, cause as u32);
            }
        }
        list.finish()
    }
}

impl Report<'_> {
    const fn status(&self) -> u32 {
        match self {
            Self::On => status::ACCOUNTING_ON,
            Self::Off => status::ACCOUNTING_OFF,
            Self::Start(_) => status::START,
            Self::Interim(..) => status::INTERIM_UPDATE,
            Self::Stop(..) => status::STOP,
        }
    }
}

impl Subscriber<'_> {
    fn write(&self, list: &mut List<'_>, session: SessionId) {
        list.attribute(USER_NAME, self.user);
        self.line.write(list, session);
        if let Some(tunnel) = &self.line.tunnel {
            tunnel.write_call(list);
        }
        if let Some(address) = self.address {
            list.address(FRAMED_IP_ADDRESS, address);
        }
        if let Some(interface_id) = &self.interface_id {
            list.attribute(FRAMED_INTERFACE_ID, interface_id);
        }
        list.integer(
            ACCT_AUTHENTIC,
            match self.authentic {
                Authentic::Radius => authentic::RADIUS,
                Authentic::Local => authentic::LOCAL,
            },
        );
        for class in self.class {
            list.attribute(CLASS, class);
        }
    }
}

impl Usage {
    /// Octets are counted in 64 bits (RFC 2869, sections 5.1 and 5.2); time and packets stop at the last number that
    /// their attributes hold.
    fn write(&self, list: &mut List<'_>) {
        let bounded = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        list.integer(ACCT_SESSION_TIME, bounded(self.time_s));
        for (octets, low, high) in [
            (self.input_octets, ACCT_INPUT_OCTETS, ACCT_INPUT_GIGAWORDS),
            (
                self.output_octets,
                ACCT_OUTPUT_OCTETS,
                ACCT_OUTPUT_GIGAWORDS,
            ),
        ] {
            list.integer(low, octets as u32);
            if octets >> 32 > 0 {
                list.integer(high, (octets >> 32) as u32);
            }
        }
        list.integer(ACCT_INPUT_PACKETS, bounded(self.input_packets))
            .integer(ACCT_OUTPUT_PACKETS, bounded(self.output_packets));
    }
}
