//! A link as a value: written as bytes, read back by another process, and what a crash costs it.
//!
//! A snapshot has every field that decides what the link does next: a link that is read back sends and reports what the
//! first one would have. It is a [`Part`], so that an owner's record can contain it. Not part of it are:
//! - the credentials of a client, which the reader passes in;
//! - [`crate::Config`] and the random numbers, which the owner passes to every call;
//! - the [`crate::Outbox`], which the owner drains before it writes.
//!
//! The bytes are those of [`base::snapshot`]. `tests/link/snapshot_fields.txt` has the numbers of all fields.

use base::Instant;
use base::snapshot::{Codec, Part, ReadError, Reader, Writer};

use super::early::Early;
use super::{Client, Grant, Link, Own};
use crate::applicant::Applicant;
use crate::auth::Credentials;
use crate::budget::Budget;
use crate::ipcp::{Ipcp, Ipv4Offer};
use crate::ipv6cp::{Ipv6Offer, Ipv6cp};
use crate::layer::{Context, Layer, retimed};
use crate::lcp::Lcp;
use crate::snapshot;

impl Link {
    /// A link without any state, for an owner whose record contains the snapshot of a link: it reads the snapshot into
    /// this. `credentials` are as for [`Link::restore`].
    #[must_use]
    pub fn blank(credentials: Option<Credentials>) -> Self {
        let client = Client {
            applicant: credentials.map(Applicant::new),
            wish: Grant::default(),
        };
        Self::of(Lcp::default(), Some(Own::Client(client)))
    }

    /// Writes the link. It is as before afterwards. Passwords are not written.
    pub fn snapshot(&mut self, writer: &mut Writer) {
        writer.write(self);
    }

    /// Reads a link that [`Link::snapshot`] wrote. Its side, its addresses and its options are those of the snapshot.
    ///
    /// `credentials` come from the configuration. Only a client that had credentials uses them; the network's side, and
    /// a client that had none, ignore them.
    ///
    /// After a crash, call [`Link::resume`] next.
    ///
    /// # Errors
    /// The bytes are not the snapshot of a link, or it is a client that needs credentials and there are none (an
    /// impossible value of field `applicant`).
    pub fn restore(
        reader: &mut Reader<'_>,
        credentials: Option<Credentials>,
    ) -> Result<Self, ReadError> {
        let mut link = Self::blank(credentials);
        reader.next_into(&mut link)?;
        Ok(link)
    }

    /// Continues a link after a crash, whose snapshot may be older than the link was. An upgrade loses nothing and needs
    /// no call.
    ///
    /// The link forgets which Echo-Requests are unanswered and what it counted in this second. Its next Echo-Request is
    /// due after a random part of the interval; [`Link::probe`] sends one at once. If the peer was challenged again and
    /// the owner had not answered its claim, the link challenges it once more.
    ///
    /// The owner's answers to all other claims are lost too. A link without [`LinkView::is_authenticated`] is therefore
    /// better not continued.
    ///
    /// [`LinkView::is_authenticated`]: crate::LinkView::is_authenticated
    pub fn resume(&mut self, ctx: &mut Context<'_>) {
        // A random one, so that a late reply to an older request is hardly ever taken for proof.
        self.echo_id = ctx.random.number() as u8;
        self.echo_sent_us = 0;
        self.echo_rtt_us = 0;
        self.unanswered = 0;
        self.probing = false;
        self.budget = Budget::default();
        if self.is_up() {
            self.echo_at = retimed(Instant::FAR_FUTURE, ctx.config.echo_interval, ctx);
        }
        if self.in_network {
            self.authenticator.challenge_again(ctx.now);
        }
    }

    /// Sends an Echo-Request now, to find out whether the peer is still there. Does nothing unless LCP is open, or if a
    /// probe is under way.
    ///
    /// The request is repeated at [`crate::Config::echo_interval`], or at [`crate::Config::restart`] if that is zero. An
    /// Echo-Reply is proof. Without one the link ends with [`crate::LinkEnd::EchoTimeout`], as after other echoes.
    pub fn probe(&mut self, ctx: &mut Context<'_>) {
        if self.probing || !self.is_up() {
            return;
        }
        self.probing = true;
        self.unanswered = 0;
        self.echo(ctx);
    }

    fn is_up(&self) -> bool {
        self.lcp.is_opened() && self.closing.is_none()
    }
}

impl Part for Link {
    const NAME: &'static str = "link";

    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        let Self {
            lcp,
            ipcp,
            ipv6cp,
            authenticator,
            own,
            patience,
            echo_at,
            echo_id,
            echo_sent_us,
            echo_rtt_us,
            unanswered,
            probing,
            claims,
            budget,
            in_network,
            closing,
            ended,
        } = self;
        snapshot::part(codec, 1, "lcp", lcp);
        codec.maybe_part(2, "ipcp", ipcp, || Layer::new(Ipcp::BLANK));
        codec.maybe_part(3, "ipv6cp", ipv6cp, || Layer::new(Ipv6cp::default()));
        exchange_own(own, codec);
        codec.deadline(6, "patience", patience);
        codec.deadline(7, "echo_at", echo_at);
        codec.number(8, "echo_id", echo_id);
        codec.number(9, "unanswered", unanswered);
        // It counts only until the answer.
        let mut sent = (*unanswered > 0).then_some(*echo_sent_us);
        snapshot::low_bits(codec, 10, "echo_sent_us", &mut sent, 1_000);
        if C::READS {
            if sent.is_some() != (*unanswered > 0) {
                codec.refuse();
            }
            *echo_sent_us = sent.unwrap_or_default();
        }
        codec.number(11, "echo_rtt_us", echo_rtt_us);
        codec.number(12, "probing", probing);
        codec.number(13, "claims", claims);
        snapshot::number_or(codec, 14, "in_network", in_network, true);
        codec.choice(15, "closing", closing, snapshot::ENDS);
        codec.number(16, "ended", ended);
        authenticator.fields(codec);
        budget.fields(codec);
    }
}

/// State that only some links have: a client's, or early requests.
fn exchange_own<C: Codec>(own: &mut Option<Box<Own>>, codec: &mut C) {
    let (mut client, mut early) = match own.as_deref_mut() {
        Some(Own::Client(client)) => (Some(core::mem::take(client)), None),
        Some(Own::Early(early)) => (None, Some(core::mem::take(early))),
        None => (None, None),
    };
    match codec.field(4, "client", client.is_some()) {
        true => _ = codec.within(client.get_or_insert_default()),
        // A blank link is a client's.
        false => client = None,
    }
    codec.maybe_part(5, "early", &mut early, Early::default);
    if C::READS && client.is_some() && early.is_some() {
        codec.refuse();
    }
    let new = client.map(Own::Client).or(early.map(Own::Early));
    match (own.as_deref_mut(), new) {
        (Some(place), Some(new)) => *place = new,
        (_, new) => *own = new.map(Box::new),
    }
}

impl Part for Client {
    const NAME: &'static str = "client";

    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        let Self { applicant, wish } = self;
        match (
            codec.field(1, "applicant", applicant.is_some()),
            &mut *applicant,
        ) {
            (true, Some(applicant)) => _ = codec.within(applicant),
            // It needs credentials.
            (true, None) => codec.refuse(),
            (false, _) => *applicant = None,
        }
        let Grant { ipv4, ipv6 } = wish;
        codec.maybe_part(2, "ipv4", ipv4, || Ipv4Offer::BLANK);
        codec.maybe_part(3, "ipv6", ipv6, || Ipv6Offer::free(0));
    }
}
