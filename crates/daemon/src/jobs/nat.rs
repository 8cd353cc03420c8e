//! Commands about the translation of addresses: who has a port, port forwarding. The translations of all threads answer
//! each, within a turn or two.

use std::net::SocketAddrV4;
use std::time::{SystemTime, UNIX_EPOCH};

use base::Duration;
use edge::{Asked, Owner};
use nat::{Forward, ForwardError, ForwardRequest, Protocol};

use super::{Context, Work};
use crate::client::Steps;
use crate::show;
use control::reply::{self, Code, Refusal, Rows};
use control::request::{NatForward, NatForwardName, NatPort, Transport};

/// A command that waits for answers.
pub(super) enum NatWork {
    Who(SocketAddrV4, Asked<Owner>),
    Forward(ForwardRequest, Asked<Result<Forward, ForwardError>>),
    Unforward(SocketAddrV4, Asked<Option<Forward>>),
}

type Begun = Result<Option<Work>, Refusal>;

fn protocol(transport: Transport) -> Protocol {
    match transport {
        Transport::Tcp => Protocol::Tcp,
        Transport::Udp => Protocol::Udp,
    }
}

impl Context<'_> {
    /// Refuses a request if there is no translation.
    pub(super) fn nat(&self) -> Result<(), Refusal> {
        self.core.edge.nat_config().map(|_| ()).ok_or_else(none)
    }

    /// Asks who has an external port now.
    pub(super) fn nat_who(&mut self, port: NatPort) -> Begun {
        let now = self.core.now;
        let (address, number) = (*port.external.ip(), port.external.port());
        let asked = self.core.edge.nat_owner(address, number, now);
        let asked = asked.ok_or_else(none)?;
        Ok(Some(Work::Nat(NatWork::Who(port.external, asked))))
    }

    /// Forwards a port, or renews that.
    pub(super) fn nat_forward(&mut self, wish: NatForward) -> Begun {
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
        let asked = self.core.edge.forward_port(&wish, now).ok_or_else(none)?;
        Ok(Some(Work::Nat(NatWork::Forward(wish, asked))))
    }

    /// Ends a port forwarding.
    pub(super) fn nat_unforward(&mut self, name: NatForwardName) -> Begun {
        let now = self.core.now;
        let external = (*name.external.ip(), name.external.port());
        let edge = &mut self.core.edge;
        let asked = edge.unforward_port(protocol(name.protocol), external, now);
        let asked = asked.ok_or_else(none)?;
        Ok(Some(Work::Nat(NatWork::Unforward(name.external, asked))))
    }

    /// Replies once all threads have answered.
    pub(super) fn nat_answered(
        &mut self,
        id: u64,
        work: NatWork,
        steps: &mut Steps,
    ) -> Option<Work> {
        let replied = match &work {
            NatWork::Who(external, asked) => asked.answer().map(|owner| {
                self.tell_owner(id, *external, &owner);
                Ok(())
            }),
            NatWork::Forward(wish, asked) => {
                let answer = asked.answer();
                answer.map(|answer| self.tell_forwarded(id, wish, answer))
            }
            NatWork::Unforward(external, asked) => {
                let answer = asked.answer();
                answer.map(|ended| self.tell_unforwarded(id, *external, ended))
            }
        };
        match replied {
            None => {
                steps.end();
                return Some(Work::Nat(work));
            }
            Some(Ok(())) => {}
            Some(Err(refusal)) => reply::refused(self.client.out(), id, &refusal),
        }
        None
    }

    fn tell_owner(&mut self, id: u64, external: SocketAddrV4, owner: &Owner) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let at_s = since.map_or(0.0, |since| (since.as_millis() as f64) / 1000.0);
        let found = show::nat_who(self.core, owner, external, at_s);
        for row in &found {
            reply::row(self.client.out(), id, row);
        }
        reply::end(self.client.out(), id, found.len() as u64);
    }

    fn tell_forwarded(
        &mut self,
        id: u64,
        wish: &ForwardRequest,
        answer: Result<Forward, ForwardError>,
    ) -> Result<(), Refusal> {
        let forward = answer.map_err(|why| {
            let message = match why {
                ForwardError::Nobody => format!(
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
        self.tell_forward(id, &forward);
        Ok(())
    }

    fn tell_unforwarded(
        &mut self,
        id: u64,
        external: SocketAddrV4,
        ended: Option<Forward>,
    ) -> Result<(), Refusal> {
        let Some(forward) = ended else {
            let message = format!("{external} is not forwarded");
            return Err(Refusal::new(Code::NotFound, message));
        };
        tracing::info!("headend nat forward: {external} is not forwarded any more");
        self.tell_forward(id, &forward);
        Ok(())
    }

    fn tell_forward(&mut self, id: u64, forward: &Forward) {
        let mut out = Rows::new(self.client.out(), id);
        show::push_forward(self.core, forward, &mut out);
        reply::end(self.client.out(), id, 1);
    }
}

fn none() -> Refusal {
    let message = "this daemon translates no addresses: its configuration has no [nat]";
    Refusal::new(Code::Refused, message)
}
