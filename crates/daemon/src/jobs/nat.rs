//! Commands about the translation of addresses: who has a port, port forwarding.

use std::time::{SystemTime, UNIX_EPOCH};

use base::Duration;
use nat::{ForwardRequest, Nat, Protocol};

use super::{Context, Work};
use crate::show;
use control::reply::{self, Code, Refusal, Rows};
use control::request::{NatForward, NatForwardName, NatPort, Transport};

fn protocol(transport: Transport) -> Protocol {
    match transport {
        Transport::Tcp => Protocol::Tcp,
        Transport::Udp => Protocol::Udp,
    }
}

impl Context<'_> {
    /// The translation.
    pub(super) fn nat(&self) -> Result<&Nat, Refusal> {
        self.core.edge.nat().ok_or_else(none)
    }

    /// Answers who has an external port now.
    pub(super) fn nat_who(&mut self, id: u64, port: NatPort) -> Result<Option<Work>, Refusal> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let at_s = since.map_or(0.0, |since| (since.as_millis() as f64) / 1000.0);
        let found = show::nat_who(self.core, self.nat()?, port.external, at_s);
        for row in &found {
            reply::row(self.client.out(), id, row);
        }
        reply::end(self.client.out(), id, found.len() as u64);
        Ok(None)
    }

    /// Forwards a port, or renews that.
    pub(super) fn nat_forward(
        &mut self,
        id: u64,
        wish: NatForward,
    ) -> Result<Option<Work>, Refusal> {
        let wish = ForwardRequest {
            protocol: protocol(wish.protocol),
            inside: *wish.inside.ip(),
            inside_port: wish.inside.port(),
            external: wish
                .external
                .map(|external| (*external.ip(), external.port())),
            subscriber: None,
            lifetime: wish
                .lifetime_s
                .map(|seconds| Duration::from_secs(seconds.into())),
        };
        if wish.inside_port == 0 || wish.external.is_some_and(|(_, port)| port == 0) {
            return Err(Refusal::new(Code::BadRequest, "port 0 cannot be forwarded"));
        }
        let now = self.core.now;
        let forwarded = self.core.edge.forward_port(&wish, now).ok_or_else(none)?;
        let forward = forwarded.map_err(|why| {
            let message = match why {
                nat::ForwardError::Nobody => format!(
                    "no subscriber has {}, and no external port is named",
                    wish.inside
                ),
                why => why.to_string(),
            };
            Refusal::new(Code::Refused, message)
        })?;
        tracing::info!(
            "headend nat forward: {}:{} leads to {}:{}",
            forward.external,
            forward.external_port,
            forward.inside,
            forward.inside_port
        );
        let mut out = Rows::new(self.client.out(), id);
        show::push_forward(self.core, &forward, &mut out);
        reply::end(self.client.out(), id, 1);
        Ok(None)
    }

    /// Ends a port forwarding.
    pub(super) fn nat_unforward(
        &mut self,
        id: u64,
        name: NatForwardName,
    ) -> Result<Option<Work>, Refusal> {
        let now = self.core.now;
        let (address, port) = (*name.external.ip(), name.external.port());
        let nat = self.core.edge.nat_mut().ok_or_else(none)?;
        let ended = nat.unforward(protocol(name.protocol), address, port, now);
        let Some(forward) = ended else {
            let message = format!("{} is not forwarded", name.external);
            return Err(Refusal::new(Code::NotFound, message));
        };
        tracing::info!(
            "headend nat forward: {} is not forwarded any more",
            name.external
        );
        let mut out = Rows::new(self.client.out(), id);
        show::push_forward(self.core, &forward, &mut out);
        reply::end(self.client.out(), id, 1);
        Ok(None)
    }
}

fn none() -> Refusal {
    let message = "this daemon translates no addresses: its configuration has no [nat]";
    Refusal::new(Code::Refused, message)
}
