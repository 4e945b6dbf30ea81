//! Turns errors of the server and of the connection into a [`StoreError`], which says whether a retry may help.

use crate::store::StoreError;
use deadpool_postgres::PoolError;
use std::error::Error as _;
use std::io;
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, SqlState};

pub fn error(name: &str, error: &Error) -> StoreError {
    match error.as_db_error() {
        Some(answer) => from_server(name, answer),
        None => {
            let text = match error.source() {
                Some(source) => format!("{name}: {error}: {source}"),
                None => format!("{name}: {error}"),
            };
            if is_untrusted(error) {
                StoreError::Untrusted(text)
            } else if is_connection_failure(error) {
                StoreError::Unavailable(text)
            } else {
                StoreError::Broken(text)
            }
        }
    }
}

pub fn pool(name: &str, problem: PoolError) -> StoreError {
    match problem {
        PoolError::Backend(source) => error(name, &source),
        PoolError::Timeout(_) => StoreError::Unavailable(format!("{name}: no connection in time")),
        PoolError::Closed | PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(_) => {
            StoreError::Broken(format!("{name}: {problem}"))
        }
    }
}

fn from_server(name: &str, answer: &DbError) -> StoreError {
    let detail = answer.detail().map(|detail| format!(" ({detail})")).unwrap_or_default();
    let code = answer.code();
    let advice = if is_unlisted(answer) { ENCRYPTION } else { "" };
    let text = format!("{name}: {}{detail}{advice}", answer.message());
    if *code == SqlState::DISK_FULL {
        StoreError::Full(text)
    } else if [SqlState::READ_ONLY_SQL_TRANSACTION, SqlState::INSUFFICIENT_PRIVILEGE].contains(code) {
        StoreError::ReadOnly(text)
    } else if [SqlState::DATA_CORRUPTED, SqlState::INDEX_CORRUPTED].contains(code) {
        StoreError::Damaged(text)
    } else if is_temporary(code) {
        StoreError::Unavailable(text)
    } else {
        StoreError::Broken(text)
    }
}

/// The server's list of permitted connections (`pg_hba.conf`) has no entry for this one, often because of encryption. The message
/// may be in any language, but the name of the file is always the same.
fn is_unlisted(answer: &DbError) -> bool {
    *answer.code() == SqlState::INVALID_AUTHORIZATION_SPECIFICATION && answer.message().contains("pg_hba.conf")
}

const ENCRYPTION: &str = "; if the server requires encryption, set sslmode=require in the store's URL; if it refuses encryption, sslmode=disable";

/// Whether an error is temporary, and not caused by the statement. The transaction was rolled back.
fn is_temporary(code: &SqlState) -> bool {
    const CONNECTION_EXCEPTION: &str = "08";
    const INSUFFICIENT_RESOURCES: &str = "53";
    [CONNECTION_EXCEPTION, INSUFFICIENT_RESOURCES].iter().any(|class| code.code().starts_with(class))
        || [
            SqlState::ADMIN_SHUTDOWN,
            SqlState::CRASH_SHUTDOWN,
            SqlState::CANNOT_CONNECT_NOW,
            SqlState::QUERY_CANCELED,
            SqlState::LOCK_NOT_AVAILABLE,
            SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::T_R_DEADLOCK_DETECTED,
        ]
        .contains(code)
}

/// The server's certificate was not accepted. A retry would not help.
fn is_untrusted(error: &Error) -> bool {
    let io = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    let tls = io.and_then(io::Error::get_ref).and_then(|inner| inner.downcast_ref::<rustls::Error>());
    matches!(tls, Some(rustls::Error::InvalidCertificate(_)))
}

/// The connection could not be made, or was lost. A value that the client cannot encode is another error.
fn is_connection_failure(error: &Error) -> bool {
    let io = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    error.is_closed() || io.is_some_and(|io| io.kind() != io::ErrorKind::InvalidInput)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_errors_are_told_from_lasting_ones() {
        for code in ["08006", "53300", "57P01", "57P02", "57P03", "55P03", "40P01", "25P03"] {
            assert!(is_temporary(&SqlState::from_code(code)), "{code}");
        }
        for code in ["42P01", "23505", "28P01", "3D000"] {
            assert!(!is_temporary(&SqlState::from_code(code)), "{code}");
        }
    }
}
