//! Lists of errors, by name or number: `EIO:ENOSPC,28,EILSEQ`.

use super::Notes;

use crate::IgnoredErrors;
use crate::spelling::{closest, did_you_mean};

/// Names and numbers of one block of `libc`'s constants.
macro_rules! numbered {
    ($($name:ident)+) => {
        &[$((stringify!($name), libc::$name)),+]
    };
}

/// Linux's names for its error numbers.
static NAMES: &[(&str, i32)] = numbered! {
    EPERM ENOENT ESRCH EINTR EIO ENXIO E2BIG ENOEXEC EBADF ECHILD EAGAIN EWOULDBLOCK ENOMEM EACCES EFAULT ENOTBLK
    EBUSY EEXIST EXDEV ENODEV ENOTDIR EISDIR EINVAL ENFILE EMFILE ENOTTY ETXTBSY EFBIG ENOSPC ESPIPE EROFS EMLINK
    EPIPE EDOM ERANGE EDEADLK ENAMETOOLONG ENOLCK ENOSYS ENOTEMPTY ELOOP ENOMSG EIDRM ENOSTR ENODATA ETIME ENOSR
    ENONET ENOLINK ECOMM EPROTO EBADMSG EOVERFLOW ENOTUNIQ EBADFD EREMCHG EILSEQ ERESTART EUSERS ENOTSOCK
    EDESTADDRREQ EMSGSIZE EPROTOTYPE ENOPROTOOPT EPROTONOSUPPORT ESOCKTNOSUPPORT EOPNOTSUPP ENOTSUP EPFNOSUPPORT
    EAFNOSUPPORT EADDRINUSE EADDRNOTAVAIL ENETDOWN ENETUNREACH ENETRESET ECONNABORTED ECONNRESET ENOBUFS EISCONN
    ENOTCONN ESHUTDOWN ETOOMANYREFS ETIMEDOUT ECONNREFUSED EHOSTDOWN EHOSTUNREACH EALREADY EINPROGRESS ESTALE
    EUCLEAN EREMOTEIO EDQUOT ENOMEDIUM EMEDIUMTYPE ECANCELED ENOKEY EKEYEXPIRED EKEYREVOKED EKEYREJECTED
    EOWNERDEAD ENOTRECOVERABLE ERFKILL EHWPOISON
};

/// The largest error number that the kernel returns.
const LARGEST: i32 = 4095;

/// Parses the lists for reads, writes and verification, separated by commas. The errors of a list are separated by
/// colons.
///
/// # Errors
/// A word is neither an error's name nor a number, or there are more than three lists.
pub fn ignored_errors(text: &str, notes: &mut Notes) -> Result<IgnoredErrors, String> {
    let mut lists = text.split(',').map(|list| error_list(list, notes));
    let mut next = || lists.next().transpose().map(Option::unwrap_or_default);
    let ignored = IgnoredErrors { read: next()?, write: next()?, verify: next()? };
    match lists.next() {
        None => Ok(ignored),
        Some(_) => Err("has more than three lists (read, write, verify)".to_owned()),
    }
}

fn error_list(text: &str, notes: &mut Notes) -> Result<Vec<i32>, String> {
    text.split(':').map(str::trim).filter(|word| !word.is_empty()).map(|word| error(word, notes)).collect()
}

fn error(word: &str, notes: &mut Notes) -> Result<i32, String> {
    if let Some(&(_, number)) = NAMES.iter().find(|(name, _)| *name == word) {
        return Ok(number);
    }
    let unknown = || {
        let names = NAMES.iter().map(|(name, _)| *name);
        let meant = did_you_mean(closest(&word.to_uppercase(), names));
        format!("\"{word}\" is neither an error's name nor its number{meant}")
    };
    let number: i64 = word.parse().map_err(|_| unknown())?;
    let number = i32::try_from(number.unsigned_abs()).map_err(|_| unknown())?;
    if number == 0 || number > LARGEST {
        notes.push(format!("there is no error {number}"));
    }
    Ok(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Name;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<[Vec<i32>; 3], String> {
        let ignored = ignored_errors(text, &mut Notes::of(Name::Fio))?;
        Ok([ignored.read, ignored.write, ignored.verify])
    }

    #[test]
    fn a_list_for_each_kind() {
        assert_eq!(read("EAGAIN,ENOSPC:122"), Ok([vec![11], vec![28, 122], vec![]]));
        assert_eq!(read(",28"), Ok([vec![], vec![28], vec![]]));
        assert_eq!(read(",,EILSEQ:"), Ok([vec![], vec![], vec![84]]));
        assert_eq!(read("-5"), Ok([vec![5], vec![], vec![]]));
        assert!(read("EIO,EIO,EIO,EIO").is_err_and(|error| error.contains("three lists")));
    }

    #[test]
    fn unknown_error_names_are_refused_and_unknown_numbers_noted() {
        let error = read("eio").unwrap_err();
        assert_eq!(error, "\"eio\" is neither an error's name nor its number; did you mean \"EIO\"?");
        assert!(read("EFOO").is_err());
        assert!(read("5x").is_err());
        let mut notes = Notes::of(Name::Fio);
        assert!(ignored_errors("99999", &mut notes).is_ok());
        assert_eq!(*notes, ["there is no error 99999"]);
    }

    proptest! {
        #![proptest_config(iolite_testing::properties(256))]

        #[test]
        fn never_panics(text in "[-A-Z0-9:, ]{0,30}") {
            let _ = read(&text);
        }

        #[test]
        fn numbers_read_back(numbers in prop::collection::vec(1..LARGEST, 1..5)) {
            let text: Vec<String> = numbers.iter().map(i32::to_string).collect();
            prop_assert_eq!(read(&text.join(":")), Ok([numbers, vec![], vec![]]));
        }
    }
}
