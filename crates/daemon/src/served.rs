//! The edge's types for the protocols that the daemon serves: L2TP and PPPoE.

use edge::access::{Access, Either, Served};

pub(crate) type Edge = edge::Edge<Served>;
pub(crate) type Event = edge::Event<Served>;
pub(crate) type SubscriberView<'a> = edge::SubscriberView<'a, Served>;

pub(crate) type Far = edge::Far<Place>;
pub(crate) type SwitchedView<'a> = edge::SwitchedView<'a, Place>;

/// The source or destination of a frame.
pub(crate) type Route = Either<base::Route, pppoe::Route>;
pub(crate) type Session = Either<l2tp::SessionKey, pppoe::SessionKey>;
pub(crate) type Place = <Served as Access>::Place;

type Reason = <Served as Access>::Reason;
type Encapsulation = <Served as Access>::Encapsulation;

pub(crate) type Account = edge::Account<Place>;
pub(crate) type Change = edge::Change<Encapsulation>;
pub(crate) type End = edge::End<Reason>;
pub(crate) type Path = edge::Path<Encapsulation>;
pub(crate) type Passed = edge::Passed<Route>;
pub(crate) type Tapped = edge::Tapped<Route>;
