//! From words to a filter.
//!
//! A variable that exists for each end stands for two; an expression of several such variables
//! stands for each combination, until a comparison joins them.

use super::lex::{self, Token};
use super::variables::{self, Kind};
use super::{Node, Op};

/// Most combinations of ends that an expression may stand for.
const COMBINATIONS_MAX: usize = 4096;

/// How deep parentheses and NOT may be nested.
const DEPTH_MAX: usize = 200;

type Wrong = (usize, String);

/// What an expression may be, by end.
struct Choice {
    nodes: Vec<Node>,
    kind: Kind,
    /// It has to hold for both ends, rather than for either.
    both: bool,
    /// Where it begins.
    at: usize,
}

/// Reads a filter.
///
/// # Errors
/// A fault and its position.
pub(super) fn parse(text: &str) -> Result<Node, Wrong> {
    let words = lex::words(text)?;
    let mut parser = Parser {
        words,
        next: 0,
        depth: 0,
    };
    let choice = parser.expression(1)?;
    match parser.peek() {
        Token::End => {}
        Token::Close => return Err(parser.wrong("this ')' has no '('")),
        _ => return Err(parser.wrong("an operator has to come here")),
    }
    if choice.kind != Kind::Truth {
        return Err((
            choice.at,
            "this is a value; compare it with something".into(),
        ));
    }
    let (op, mut nodes) = (join(choice.both), choice.nodes.into_iter());
    let first = nodes.next().unwrap_or(Node::Truth(false));
    Ok(nodes.fold(first, |all, node| both_of(op, all, node)))
}

fn join(both: bool) -> Op {
    if both { Op::And } else { Op::Or }
}

fn both_of(op: Op, left: Node, right: Node) -> Node {
    Node::Two(op, Box::new((left, right)))
}

struct Parser {
    words: Vec<(usize, Token)>,
    next: usize,
    depth: usize,
}

impl Parser {
    fn peek(&self) -> &Token {
        self.words
            .get(self.next)
            .map_or(&Token::End, |word| &word.1)
    }

    fn at(&self) -> usize {
        let last = self.words.len().saturating_sub(1);
        self.words.get(self.next.min(last)).map_or(0, |word| word.0)
    }

    fn wrong(&self, why: &str) -> Wrong {
        (self.at(), why.to_owned())
    }

    fn deeper(&mut self) -> Result<(), Wrong> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.wrong("this is nested too deep"));
        }
        Ok(())
    }

    /// NOT, AND and OR, of at least that precedence.
    fn expression(&mut self, least: u8) -> Result<Choice, Wrong> {
        self.deeper()?;
        let at = self.at();
        let mut left = if *self.peek() == Token::Not {
            self.next += 1;
            // NOT binds loosest: what follows is all its own.
            let of = self.expression(1)?;
            not(of, at)?
        } else {
            self.comparison()?
        };
        loop {
            let (op, precedence) = match *self.peek() {
                Token::Op(Op::And) => (Op::And, 1),
                Token::Op(Op::Or) => (Op::Or, 2),
                _ => break,
            };
            if precedence < least {
                break;
            }
            let at = self.at();
            self.next += 1;
            let right = self.expression(precedence + 1)?;
            left = combine(op, at, left, right)?;
        }
        self.depth -= 1;
        Ok(left)
    }

    fn comparison(&mut self) -> Result<Choice, Wrong> {
        let left = self.number(1)?;
        let at = self.at();
        let op = match *self.peek() {
            Token::Op(op) if precedence(op).is_none() && !matches!(op, Op::And | Op::Or) => op,
            _ => return Ok(left),
        };
        self.next += 1;
        let right = self.number(1)?;
        combine(op, at, left, right)
    }

    /// Arithmetic of at least that precedence.
    fn number(&mut self, least: u8) -> Result<Choice, Wrong> {
        let mut left = self.leaf()?;
        while let Token::Op(op) = *self.peek() {
            let Some(precedence) = precedence(op).filter(|&precedence| precedence >= least) else {
                break;
            };
            let at = self.at();
            self.next += 1;
            let right = self.number(precedence + 1)?;
            left = combine(op, at, left, right)?;
        }
        Ok(left)
    }

    fn leaf(&mut self) -> Result<Choice, Wrong> {
        let at = self.at();
        let token = self.peek().clone();
        self.next += 1;
        let (node, kind) = match token {
            Token::Number(number) => (Node::Number(i128::from(number)), Kind::Unsigned),
            Token::Negative(number) => (Node::Number(-i128::from(number)), Kind::Signed),
            Token::Truth(truth) => (Node::Truth(truth), Kind::Truth),
            Token::Text(text) => (Node::Text(text), Kind::Text),
            Token::Address(address) => (Node::Address(address), Kind::Address),
            Token::Name(name) => return variable(&name, at),
            Token::Open => {
                let inner = self.expression(1)?;
                if *self.peek() != Token::Close {
                    return Err(self.wrong("a ')' is missing here"));
                }
                self.next += 1;
                return Ok(inner);
            }
            Token::End => return Err((at, "something is missing here".into())),
            Token::Op(_) | Token::Not | Token::Close => {
                return Err((at, "a value has to come here".into()));
            }
        };
        Ok(Choice {
            nodes: vec![node],
            kind,
            both: false,
            at,
        })
    }
}

/// Precedence of an arithmetic operator; `None` for other operators.
fn precedence(op: Op) -> Option<u8> {
    match op {
        Op::BitAnd | Op::BitOr => Some(1),
        Op::Plus | Op::Minus => Some(2),
        Op::Times | Op::Divide | Op::Modulo => Some(3),
        _ => None,
    }
}

/// `c_segs`, `s_segs`, `b_segs`, `e_segs`, `segs`.
fn variable(written: &str, at: usize) -> Result<Choice, Wrong> {
    let (end, name) = match written.split_at_checked(2) {
        Some((end, name)) if end.ends_with('_') => (end.to_ascii_lowercase(), name),
        _ => (String::new(), written),
    };
    let (ends, both, name): (&[bool], bool, &str) = match end.as_str() {
        "c_" => (&[true], false, name),
        "s_" => (&[false], false, name),
        "b_" => (&[true, false], true, name),
        "e_" | "" => (&[true, false], false, name),
        _ => (&[true, false], false, written),
    };
    let variable = variables::by_name(name)
        .ok_or_else(|| (at, format!("no variable is called '{name}' (see -hfilter)")))?;
    let node = |&client: &bool| Node::Variable {
        variable,
        name: name.to_owned(),
        client,
    };
    Ok(Choice {
        nodes: ends.iter().map(node).collect(),
        kind: variable.kind,
        both,
        at,
    })
}

fn not(of: Choice, at: usize) -> Result<Choice, Wrong> {
    if of.kind != Kind::Truth {
        return Err((of.at, "NOT takes what is true or false".into()));
    }
    let nodes = of.nodes.into_iter().rev();
    Ok(Choice {
        nodes: nodes.map(|node| Node::Not(Box::new(node))).collect(),
        at,
        ..of
    })
}

/// Joins two expressions.
fn combine(op: Op, at: usize, left: Choice, right: Choice) -> Result<Choice, Wrong> {
    let kind = check(op, at, &left, &right)?;
    if left.nodes.len() * right.nodes.len() > COMBINATIONS_MAX {
        let why = "too many combinations of ends; write c_, s_ or b_ in front of variables";
        return Err((at, why.into()));
    }
    let both = left.both || right.both;
    let begin = left.at;
    let mixed = matches!(
        (left.kind, right.kind),
        (Kind::Signed, Kind::Unsigned) | (Kind::Unsigned, Kind::Signed)
    );
    let of = |node: &Node, kind: Kind| match kind {
        Kind::Unsigned if mixed => Node::Signed(Box::new(node.clone())),
        _ => node.clone(),
    };
    let mut nodes: Vec<Node> = Vec::new();
    for a in &left.nodes {
        for b in &right.nodes {
            let node = both_of(op, of(a, left.kind), of(b, right.kind));
            match nodes.pop() {
                Some(before) if kind == Kind::Truth => {
                    nodes.push(both_of(join(both), before, node));
                }
                before => {
                    nodes.extend(before);
                    nodes.push(node);
                }
            }
        }
    }
    if kind != Kind::Truth {
        nodes.reverse();
    }
    Ok(Choice {
        nodes,
        kind,
        both: both && kind != Kind::Truth,
        at: begin,
    })
}

/// Whether the operator accepts these operands, and the kind of its result.
fn check(op: Op, at: usize, left: &Choice, right: &Choice) -> Result<Kind, Wrong> {
    let number = |choice: &Choice| matches!(choice.kind, Kind::Signed | Kind::Unsigned);
    let neither = |good: fn(&Choice) -> bool| [left, right].into_iter().find(|&side| !good(side));
    match op {
        Op::And | Op::Or => match neither(|side| side.kind == Kind::Truth) {
            Some(side) => Err((side.at, "AND and OR take what is true or false".into())),
            None => Ok(Kind::Truth),
        },
        _ if precedence(op).is_some() => {
            let wrong = [left, right].into_iter().find(|side| !number(side));
            match wrong {
                Some(side) => Err((side.at, "this is no number to calculate with".into())),
                None if left.kind == right.kind => Ok(left.kind),
                None => Ok(Kind::Signed),
            }
        }
        _ => {
            let comparable = |side: &Choice| number(side) || side.kind == Kind::Truth;
            if left.kind == right.kind || comparable(left) && comparable(right) {
                return Ok(Kind::Truth);
            }
            let what = |side: &Choice| side.kind.name();
            let (left, right) = (what(left), what(right));
            Err((at, format!("{left} cannot be compared with {right}")))
        }
    }
}
