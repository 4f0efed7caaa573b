//! A value as it was given, before it lands: parsed as the option's definition says.

use super::{Definition, Limits};
use crate::SizeValue;
use crate::values::{Notes, floats, integer, keyword, outside, per_direction, size, split, time};
use iolite_types::PerDirection;

/// The text of one option's value, and the context for parsing it.
#[derive(Debug)]
pub struct Given<'a> {
    /// The option that it was given for.
    pub definition: &'static Definition,
    /// The text, without surrounding blanks; `None` if the option has no value.
    pub text: Option<&'a str>,
    /// 1024 or 1000: the meaning of `k` (see [`crate::values`]).
    pub kb_base: u32,
    /// Notes about suspicious input that is accepted. The caller adds name, value and place.
    pub notes: Notes,
}

impl<'a> Given<'a> {
    /// The text.
    ///
    /// # Errors
    /// The text is missing or empty.
    pub fn required(&self) -> Result<&'a str, String> {
        self.text.filter(|text| !text.is_empty()).ok_or_else(|| "needs a value".to_owned())
    }

    /// The text as an owned string.
    ///
    /// # Errors
    /// As [`Given::required`].
    pub fn string(&self) -> Result<String, String> {
        self.required().map(str::to_owned)
    }

    /// One integer within the option's limits. Further numbers after a comma, colon or minus are ignored with a note
    /// under the name `fio`.
    ///
    /// # Errors
    /// The text is not a number, or the number is out of the limits; or, under our own name, further numbers follow.
    pub fn integer(&mut self) -> Result<i128, String> {
        let text = self.required()?;
        let (sign, unsigned) = text.split_at(usize::from(text.starts_with('-')));
        let parts = split(unsigned, &[',', ':', '-']);
        self.ignore_behind(&parts, "number")?;
        self.checked_integer(&format!("{sign}{}", parts[0]))
    }

    /// A size, in bytes or percent. Further sizes after a comma are ignored with a note under the name `fio`.
    ///
    /// # Errors
    /// As [`size`]; or, under our own name, further sizes follow.
    pub fn size(&mut self) -> Result<SizeValue, String> {
        let parts = split(self.required()?, &[',']);
        self.ignore_behind(&parts, "size")?;
        size(parts[0], self.kb_base, &mut self.notes)
    }

    /// Ignores what follows the first of the parts. (Separators with nothing behind them are no further parts.)
    fn ignore_behind(&mut self, parts: &[&str], one: &str) -> Result<(), String> {
        let others: Vec<_> = parts[1..].iter().copied().filter(|part| !part.is_empty()).collect();
        if others.is_empty() {
            return Ok(());
        }
        let (first, others) = (parts[0], others.join(","));
        let what = format!("takes one {one}; \"{others}\" behind \"{first}\" has no effect, leave it out");
        self.notes.ignore(what, "")
    }

    fn checked_integer(&mut self, text: &str) -> Result<i128, String> {
        let value = integer(text, self.kb_base, &mut self.notes)?;
        let (low, high) = match self.definition.limits {
            Limits::AtLeast(low) | Limits::OnlyMin(low) => (i128::from(low), i128::MAX),
            Limits::Between(low, high) => (i128::from(low), i128::from(high)),
            Limits::None | Limits::Floats(..) => (i128::MIN, i128::MAX),
        };
        if (low..=high).contains(&value) {
            return Ok(value);
        }
        let (name, reason) = (self.definition.name, outside(value, low, high));
        Err(match (low, value < low) {
            (_, false) => self
                .notes
                .refusal(format_args!("{name}: max value out of range: {value} ({high} max)"), reason),
            // (fio takes negative numbers where 0 is the least, and has no words for them.)
            (0, true) => reason,
            (_, true) => self
                .notes
                .refusal(format_args!("{name}: min value out of range: {value} ({low} min)"), reason),
        })
    }

    /// One integer that fits `T`.
    ///
    /// # Errors
    /// As [`Given::integer`]; or the number does not fit.
    pub fn number<T: Number>(&mut self) -> Result<T, String> {
        let value = self.integer()?;
        T::narrow(value)
    }

    /// One integer per direction; `None` for a direction that is not mentioned.
    ///
    /// # Errors
    /// An entry is not a number, is out of the limits, or does not fit `T`.
    pub fn numbers<T: Number>(&mut self) -> Result<[Option<T>; 3], String> {
        let text = self.required()?;
        // A lone `4k-8k` is taken as two entries; a minus elsewhere is a sign.
        let separators: &[char] =
            if text.contains(',') || text.starts_with('-') { &[','] } else { &[':', '-'] };
        let parts = per_direction(text, separators, &mut self.notes)?;
        let mut values = [None; 3];
        for (value, part) in values.iter_mut().zip(parts) {
            if let Some(part) = part {
                *value = Some(T::narrow(self.checked_integer(part)?)?);
            }
        }
        // The same text for several directions gives the same note for each; one is enough.
        self.notes.dedup();
        Ok(values)
    }

    /// Stores one integer for each direction that is mentioned.
    ///
    /// # Errors
    /// As [`Given::numbers`].
    pub fn numbers_into<T: Number>(&mut self, target: &mut PerDirection<T>) -> Result<(), String> {
        for (target, value) in target.values.iter_mut().zip(self.numbers()?) {
            *target = value.unwrap_or(*target);
        }
        Ok(())
    }

    /// A boolean. A flag may have no value. A flag takes any positive number as 1, with a note.
    ///
    /// # Errors
    /// The value is missing, or is not 0 or 1.
    pub fn boolean(&mut self) -> Result<bool, String> {
        let text = match self.text {
            None if self.definition.kind.value_is_optional() => return Ok(true),
            _ => self.required()?,
        };
        let value = integer(text, 1024, &mut self.notes).map_err(|_| "not 0 or 1".to_owned())?;
        match value {
            0 | 1 => Ok(value == 1),
            _ if self.definition.kind.value_is_optional() && value > 0 => {
                self.notes.push("read as 1".to_owned());
                Ok(true)
            }
            // (A negative number is 0 or 1 for fio, which has no words for it.)
            _ if value < 0 => Err("not 0 or 1".to_owned()),
            _ => Err(self
                .notes
                .refusal(format_args!("max value out of range: {value} (1 max)"), "not 0 or 1".to_owned())),
        }
    }

    /// A duration in microseconds; a bare number counts `default_unit` microseconds.
    ///
    /// # Errors
    /// As [`time`].
    pub fn time(&mut self, default_unit: u64) -> Result<u64, String> {
        time(self.required()?, default_unit, &mut self.notes)
    }

    /// One of the option's keywords.
    ///
    /// # Errors
    /// As [`keyword`].
    pub fn keyword(&mut self) -> Result<&'static str, String> {
        keyword(self.required()?, self.definition.keywords, &mut self.notes)
    }

    /// Floating point numbers within the option's limits, at most `most`.
    ///
    /// # Errors
    /// As [`floats`].
    pub fn floats(&mut self, most: usize) -> Result<Vec<f64>, String> {
        let bounds = match self.definition.limits {
            Limits::Floats(low, high) => (low, high),
            _ => (f64::MIN, f64::MAX),
        };
        floats(self.required()?, bounds, most, &mut self.notes)
    }
}

/// The integer types of job options.
pub trait Number: Copy {
    /// The value, if it fits.
    ///
    /// # Errors
    /// It does not fit.
    fn narrow(value: i128) -> Result<Self, String>;
}

macro_rules! number {
    ($($type:ty),+) => {
        $(impl Number for $type {
            fn narrow(value: i128) -> Result<Self, String> {
                Self::try_from(value).map_err(|_| outside(value, Self::MIN.into(), Self::MAX.into()))
            }
        })+
    };
}

number!(u16, u32, i32, u64, i64);

#[cfg(test)]
mod tests {
    use super::super::{Category, Kind};
    use super::*;
    use crate::Name;

    static PERCENT: Definition = Definition::job("p", Category::Job, Kind::Int, "").range(0, 100);
    static LEAST: Definition = Definition::job("l", Category::Job, Kind::Int, "").min(1);
    static FLAG: Definition = Definition::job("f", Category::Job, Kind::Flag, "");
    static BOOL: Definition = Definition::job("b", Category::Job, Kind::Bool, "");

    fn given<'a>(definition: &'static Definition, text: Option<&'a str>) -> Given<'a> {
        Given { definition, text, kb_base: 1024, notes: Notes::of(Name::Fio) }
    }

    #[test]
    fn integers_keep_to_the_limits() {
        let beyond = |value| Err(format!("p: max value out of range: {value} (must be at most 100)"));
        assert_eq!(given(&PERCENT, Some("100")).number::<u32>(), Ok(100));
        assert_eq!(given(&PERCENT, Some("101")).number::<u32>(), beyond("101 (100 max)"));
        assert_eq!(given(&PERCENT, Some("-1")).number::<u32>(), Err("must not be negative".to_owned()));
        assert_eq!(given(&FLAG, Some("4g")).number::<u32>(), Err("must be at most 4294967295".to_owned()));
        let mut several = given(&PERCENT, Some("7,8"));
        assert_eq!(several.number::<u32>(), Ok(7));
        assert_eq!(several.notes.len(), 1);
        assert_eq!(given(&PERCENT, Some("5,,6")).numbers::<u32>(), Ok([Some(5), None, Some(6)]));
        assert!(given(&PERCENT, Some("5,101")).numbers::<u32>().is_err());
        let mut own = given(&PERCENT, Some("101"));
        own.notes = Notes::default();
        assert_eq!(own.number::<u32>(), Err("must be at most 100".to_owned()));
        let least = given(&LEAST, Some("0")).number::<u32>();
        assert_eq!(least, Err("l: min value out of range: 0 (1 min) (must be at least 1)".to_owned()));
        assert_eq!(given(&PERCENT, Some("5-6")).numbers::<u32>(), Ok([Some(5), Some(6), Some(6)]));
        assert_eq!(given(&PERCENT, Some("-5")).numbers::<u32>(), Err("must not be negative".to_owned()));
        assert_eq!(given(&PERCENT, Some("5,-6")).numbers::<u32>(), Err("must not be negative".to_owned()));
    }

    #[test]
    fn booleans() {
        assert_eq!(given(&FLAG, None).boolean(), Ok(true));
        assert_eq!(given(&FLAG, Some("0")).boolean(), Ok(false));
        assert_eq!(given(&FLAG, Some("2")).boolean(), Ok(true));
        assert_eq!(given(&FLAG, Some("")).boolean(), Err("needs a value".to_owned()));
        assert_eq!(given(&BOOL, None).boolean(), Err("needs a value".to_owned()));
        assert_eq!(given(&BOOL, Some("01")).boolean(), Ok(true));
        let beyond = "max value out of range: 2 (1 max) (not 0 or 1)";
        assert_eq!(given(&BOOL, Some("2")).boolean(), Err(beyond.to_owned()));
        assert_eq!(given(&BOOL, Some("-1")).boolean(), Err("not 0 or 1".to_owned()));
        assert_eq!(given(&BOOL, Some("yes")).boolean(), Err("not 0 or 1".to_owned()));
    }
}
