//! The declaration of a row: its struct, its schema, and for each field its kind, its unit and its heading.
//!
//! [`row!`] makes all of that of one text, so tables, JSON and metrics cannot disagree. Start reading at [`RowType`].

/// A type of row that a `show` lists.
#[derive(Clone, Copy, Debug)]
pub struct RowType {
    /// Name and version, such as `tunnel/1`.
    pub schema: &'static str,
    /// How a terminal shows rows of this type.
    pub layout: Layout,
    /// The fields in the order of the JSON object, without `schema`.
    pub fields: &'static [Field],
}

impl RowType {
    /// Every field that a table or block shows, in order, with those of flattened parts in their place.
    pub fn shown(&self) -> Vec<&'static Field> {
        let mut shown = Vec::new();
        add_shown(self.fields, &mut shown);
        shown
    }
}

fn add_shown(fields: &'static [Field], shown: &mut Vec<&'static Field>) {
    for field in fields {
        match field.kind {
            Kind::Flat(part) => add_shown(part, shown),
            _ if field.heading.is_some() => shown.push(field),
            _ => {}
        }
    }
}

/// How a terminal shows the rows of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One line per row, under headings.
    Table,
    /// One line per field.
    Block,
    /// One line per row, under headings; a row is indented below its parent.
    Tree,
    /// A layout of its command's own.
    Own,
}

/// A field of a row.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// The key in the JSON object.
    pub name: &'static str,
    /// What the value is.
    pub kind: Kind,
    /// The unit of a number.
    pub unit: Unit,
    /// How tables and blocks show the value.
    pub shown: Shown,
    /// The heading of its column or line; without one, it is in JSON only.
    pub heading: Option<&'static str>,
    /// The documentation of the field.
    pub help: &'static str,
}

/// What a field's value is.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A name, number or address that tells rows apart.
    Id,
    /// A word, a text, a flag or a list of these.
    Text,
    /// A number that rises and falls, or an object of such numbers.
    Gauge,
    /// A number that only rises while the daemon runs, or an object of such numbers.
    Counter,
    /// An object with these fields, or a list of such objects.
    Part(&'static [Field]),
    /// These fields, at this place of the row itself.
    Flat(&'static [Field]),
}

/// The unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A count, or no number.
    One,
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Millis,
    /// Microseconds.
    Micros,
    /// Bytes.
    Bytes,
    /// A count per second.
    PerSecond,
    /// One count over another.
    Ratio,
    /// A part of a whole, 0 to 1.
    Share,
}

/// How a value is shown to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// Unchanged, to the left.
    Text,
    /// Unchanged, to the right.
    Number,
    /// Seconds, as 4.2s, 3m05s, 2h07m or 5d03h.
    Age,
    /// As [`Age`](Self::Age), and `never` if the value is absent.
    Since,
    /// With one decimal.
    Tenths,
    /// A fraction, as a percentage.
    Percent,
    /// Bytes, as KiB or MiB.
    Bytes,
    /// Bits per second, as 20 Mbit/s.
    Bits,
}

/// The usual way to show a number of this unit.
pub(super) const fn usual(unit: Unit) -> Shown {
    match unit {
        Unit::One => Shown::Number,
        Unit::Seconds => Shown::Age,
        Unit::Bytes => Shown::Bytes,
        Unit::Share => Shown::Percent,
        Unit::Millis | Unit::Micros | Unit::PerSecond | Unit::Ratio => Shown::Tenths,
    }
}

/// The heading, or none.
pub(super) const fn heading(heading: &[&'static str]) -> Option<&'static str> {
    match heading {
        [heading] => Some(heading),
        _ => None,
    }
}

/// Declares the struct of a row or of a part of one, with `FIELDS`, and for a row with `SCHEMA` and `TYPE`.
///
/// A field is `name: Type = [KIND UNIT SHOWN "HEADING"]`: the kind is `id`, `text`, `gauge` or `counter`; the unit, the way
/// to show it and the heading may be left out. `[part Struct]` is an object, `[flat Struct]` an object whose fields are
/// fields of the row.
macro_rules! row {
    // A row with borrowed values.
    (
        $(#[$meta:meta])*
        $name:ident<$life:lifetime> is $schema:literal as $layout:ident {
            $($(#[doc = $doc:literal])+ $(#[serde $serde:tt])* $field:ident: $ty:ty = $decl:tt,)+
        }
    ) => {
        $(#[$meta])*
        pub struct $name<$life> {
            /// Name and version of the row.
            pub schema: &$life str,
            $($(#[doc = $doc])+ $(#[serde $serde])* pub $field: $ty,)+
        }

        impl $name<'_> {
            row!(@consts $schema $layout { $($field [$($doc)+] $decl)+ });
        }
    };
    // A row that a client reads too.
    (
        $(#[$meta:meta])*
        $name:ident is $schema:literal as $layout:ident {
            $($(#[doc = $doc:literal])+ $(#[serde $serde:tt])* $field:ident: $ty:ty = $decl:tt,)+
        }
    ) => {
        $(#[$meta])*
        pub struct $name {
            /// Name and version of the row.
            pub schema: String,
            $($(#[doc = $doc])+ $(#[serde $serde])* pub $field: $ty,)+
        }

        impl $name {
            row!(@consts $schema $layout { $($field [$($doc)+] $decl)+ });
        }
    };
    // A part of a row.
    (
        $(#[$meta:meta])*
        $name:ident $(<$life:lifetime>)? is part {
            $($(#[doc = $doc:literal])+ $(#[serde $serde:tt])* $field:ident: $ty:ty = $decl:tt,)+
        }
    ) => {
        $(#[$meta])*
        pub struct $name $(<$life>)? {
            $($(#[doc = $doc])+ $(#[serde $serde])* pub $field: $ty,)+
        }

        impl $(<$life>)? $name $(<$life>)? {
            /// The fields.
            pub const FIELDS: &'static [$crate::rows::Field] = &[$(row!(@field $field [$($doc)+] $decl)),+];
        }
    };

    (@consts $schema:literal $layout:ident { $($field:ident $docs:tt $decl:tt)+ }) => {
        /// Name and version.
        pub const SCHEMA: &'static str = $schema;
        /// The fields, without `schema`.
        pub const FIELDS: &'static [$crate::rows::Field] = &[$(row!(@field $field $docs $decl)),+];
        /// Schema, layout and fields.
        pub const TYPE: $crate::rows::RowType = $crate::rows::RowType {
            schema: Self::SCHEMA,
            layout: $crate::rows::Layout::$layout,
            fields: Self::FIELDS,
        };
    };

    (@field $name:ident $docs:tt [part $part:ident]) => {
        row!(@whole $name $docs $crate::rows::Kind::Part($part::FIELDS), One, Text, [])
    };
    (@field $name:ident $docs:tt [part $part:ident $heading:literal]) => {
        row!(@whole $name $docs $crate::rows::Kind::Part($part::FIELDS), One, Text, [$heading])
    };
    (@field $name:ident $docs:tt [flat $part:ident]) => {
        row!(@whole $name $docs $crate::rows::Kind::Flat($part::FIELDS), One, Text, [])
    };
    (@field $name:ident $docs:tt [text $($heading:literal)?]) => {
        row!(@whole $name $docs $crate::rows::Kind::Text, One, Text, [$($heading)?])
    };
    (@field $name:ident $docs:tt [id text $($heading:literal)?]) => {
        row!(@whole $name $docs $crate::rows::Kind::Id, One, Text, [$($heading)?])
    };
    (@field $name:ident $docs:tt [$kind:ident $($heading:literal)?]) => {
        row!(@whole $name $docs row!(@kind $kind), One, Number, [$($heading)?])
    };
    (@field $name:ident $docs:tt [$kind:ident $unit:ident $($heading:literal)?]) => {
        $crate::rows::Field {
            shown: $crate::rows::declare::usual($crate::rows::Unit::$unit),
            ..row!(@whole $name $docs row!(@kind $kind), $unit, Number, [$($heading)?])
        }
    };
    (@field $name:ident $docs:tt [$kind:ident $unit:ident $shown:ident $($heading:literal)?]) => {
        row!(@whole $name $docs row!(@kind $kind), $unit, $shown, [$($heading)?])
    };

    (@whole $name:ident [$($doc:literal)+] $kind:expr, $unit:ident, $shown:ident, [$($heading:literal)?]) => {
        $crate::rows::Field {
            name: stringify!($name),
            kind: $kind,
            unit: $crate::rows::Unit::$unit,
            shown: $crate::rows::Shown::$shown,
            heading: $crate::rows::declare::heading(&[$($heading)?]),
            help: concat!($($doc),+).trim_ascii_start(),
        }
    };

    (@kind id) => { $crate::rows::Kind::Id };
    (@kind gauge) => { $crate::rows::Kind::Gauge };
    (@kind counter) => { $crate::rows::Kind::Counter };
}
