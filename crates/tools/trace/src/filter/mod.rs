//! tcptrace's filter language: selects the connections to report by their final statistics.
//!
//! Example: `-f'c_segs>10 and thruput>10000'`. The prefix `c_` selects the client's value (the end that sent the first
//! packet), `s_` the server's, `b_` both, and `e_` or no prefix either of them. Precedence is tcptrace's, from loosest
//! to tightest: NOT, AND, OR, comparisons, `& |`, `+ -`, `* / %`.
//!
//! Unlike in tcptrace, numbers do not wrap, truth values can be compared, `-` needs no space after it, and a filter
//! that is a single variable applies to both ends.

mod lex;
mod parse;
mod variables;

use std::cmp::Ordering;
use std::fmt;
use std::net::IpAddr;

use trace::Connection;
use trace::text::Names;

pub(super) use variables::{VARIABLES, Variable};

/// A fault of a filter, and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) text: String,
    /// Offset in bytes.
    pub(super) at: usize,
    pub(super) why: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let column = self
            .text
            .get(..self.at)
            .unwrap_or(&self.text)
            .chars()
            .count();
        writeln!(f, "-f: column {}: {}", column + 1, self.why)?;
        writeln!(f, "  {}", self.text)?;
        write!(f, "  {:column$}^", "")
    }
}

/// An operation on two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Op {
    And,
    Or,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
    Equal,
    NotEqual,
    Plus,
    Minus,
    Times,
    Divide,
    Modulo,
    BitAnd,
    BitOr,
}

impl Op {
    fn text(self) -> &'static str {
        match self {
            Op::And => "AND",
            Op::Or => "OR",
            Op::Greater => ">",
            Op::GreaterEqual => ">=",
            Op::Less => "<",
            Op::LessEqual => "<=",
            Op::Equal => "==",
            Op::NotEqual => "!=",
            Op::Plus => "+",
            Op::Minus => "-",
            Op::Times => "*",
            Op::Divide => "/",
            Op::Modulo => "%",
            Op::BitAnd => "&",
            Op::BitOr => "|",
        }
    }

    fn accepts(self, order: Ordering) -> bool {
        match self {
            Op::Greater => order == Ordering::Greater,
            Op::GreaterEqual => order != Ordering::Less,
            Op::Less => order == Ordering::Less,
            Op::LessEqual => order != Ordering::Greater,
            Op::Equal => order == Ordering::Equal,
            Op::NotEqual => order != Ordering::Equal,
            _ => false,
        }
    }
}

/// A part of a filter, for one end if it applies to either.
#[derive(Debug, Clone)]
enum Node {
    Number(i128),
    Truth(bool),
    Text(String),
    Address(IpAddr),
    Variable {
        variable: &'static Variable,
        /// As it was written.
        name: String,
        client: bool,
    },
    /// Printed as in tcptrace; it does not change the value.
    Signed(Box<Node>),
    Not(Box<Node>),
    Two(Op, Box<(Node, Node)>),
}

/// A value while a filter is applied.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    Number(i128),
    Text(String),
    Address(IpAddr),
}

/// The connection that a filter is applied to.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) connection: &'a Connection,
    pub(super) names: &'a dyn Names,
    /// When the capture ended.
    pub(super) end: i64,
}

impl Node {
    /// `None` if there is no value, as after a division by zero.
    fn value(&self, subject: Subject<'_>) -> Option<Value> {
        Some(match self {
            Node::Number(number) => Value::Number(*number),
            Node::Truth(truth) => Value::Number(i128::from(*truth)),
            Node::Text(text) => Value::Text(text.clone()),
            Node::Address(address) => Value::Address(*address),
            Node::Variable {
                variable, client, ..
            } => (variable.value)(subject, *client),
            Node::Signed(node) => return node.value(subject),
            Node::Not(node) => Value::Number(i128::from(!node.holds(subject))),
            Node::Two(op, both) => return two(*op, &both.0, &both.1, subject),
        })
    }

    fn holds(&self, subject: Subject<'_>) -> bool {
        match self {
            Node::Two(Op::And, both) => both.0.holds(subject) && both.1.holds(subject),
            Node::Two(Op::Or, both) => both.0.holds(subject) || both.1.holds(subject),
            Node::Not(node) => !node.holds(subject),
            _ => matches!(self.value(subject), Some(Value::Number(number)) if number != 0),
        }
    }
}

fn two(op: Op, left: &Node, right: &Node, subject: Subject<'_>) -> Option<Value> {
    let truth = |truth: bool| Some(Value::Number(i128::from(truth)));
    if op == Op::And {
        return truth(left.holds(subject) && right.holds(subject));
    }
    if op == Op::Or {
        return truth(left.holds(subject) || right.holds(subject));
    }
    let (left, right) = (left.value(subject)?, right.value(subject)?);
    let (a, b) = match (&left, &right) {
        (Value::Number(a), Value::Number(b)) => (*a, *b),
        (Value::Text(a), Value::Text(b)) => return truth(op.accepts(a.cmp(b))),
        // tcptrace: comparing an IPv4 address to an IPv6 one is always false.
        (Value::Address(a), Value::Address(b)) => {
            return truth(a.is_ipv4() == b.is_ipv4() && op.accepts(a.cmp(b)));
        }
        _ => return None,
    };
    Some(Value::Number(match op {
        Op::Plus => a.saturating_add(b),
        Op::Minus => a.saturating_sub(b),
        Op::Times => a.saturating_mul(b),
        Op::Divide => a.checked_div(b)?,
        Op::Modulo => a.checked_rem(b)?,
        Op::BitAnd => a & b,
        Op::BitOr => a | b,
        _ => return truth(op.accepts(a.cmp(&b))),
    }))
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Node::Number(number) => write!(f, "{number}"),
            Node::Truth(true) => f.write_str("TRUE"),
            Node::Truth(false) => f.write_str("FALSE"),
            Node::Text(text) => f.write_str(text),
            Node::Address(address) => write!(f, "{address}"),
            Node::Variable { name, client, .. } => {
                write!(f, "{}_{name}", if *client { 'c' } else { 's' })
            }
            Node::Signed(node) => write!(f, " SIGNED({node})"),
            Node::Not(node) => write!(f, " NOT({node})"),
            Node::Two(op, both) => write!(f, "({}{}{})", both.0, op.text(), both.1),
        }
    }
}

/// A filter.
#[derive(Debug, Clone)]
pub(super) struct Filter(Node);

impl Filter {
    /// Reads a filter.
    ///
    /// # Errors
    /// The filter is faulty.
    pub(super) fn parse(text: &str) -> Result<Filter, Wrong> {
        parse::parse(text).map(Filter).map_err(|(at, why)| Wrong {
            text: text.to_owned(),
            at,
            why,
        })
    }

    /// Whether a connection passes.
    pub(super) fn passes(&self, subject: Subject<'_>) -> bool {
        self.0.holds(subject)
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests;
