//! A connection of a controller: it carries bytes between a stream and the session.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use classyard_openflow::agent::SessionId;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};

use super::state::{MAX_SESSIONS, Peer, State};
use crate::tls::reason;

/// Bytes read from a connection at a time.
const READ_BYTES: usize = 1 << 16;

/// Bytes taken from a session at a time.
const WRITE_BYTES: usize = 1 << 16;

/// Time that the other end has to take an error, after which the connection is closed.
const FAREWELL_TIME: Duration = Duration::from_secs(1);

/// The state, shared by the tasks of the agent's thread.
pub(super) type Shared = Rc<RefCell<State>>;

/// Serves a connection until it ends. Returns the reason.
pub(super) async fn serve(
    state: &Shared,
    stream: impl AsyncRead + AsyncWrite,
    peer: Peer,
) -> String {
    let Some((id, wake)) = state.borrow_mut().connect(peer) else {
        return format!("{MAX_SESSIONS} connections are open, and more are not allowed");
    };
    let _session = Ending(state, id);
    carry(state, id, stream, &wake).await
}

/// Ends a session when it is dropped: after the connection, or with its task.
struct Ending<'s>(&'s Shared, SessionId);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.borrow_mut().disconnect(self.1);
    }
}

async fn carry(
    state: &Shared,
    id: SessionId,
    stream: impl AsyncRead + AsyncWrite,
    wake: &tokio::sync::Notify,
) -> String {
    let (mut reader, mut writer) = split(stream);
    let mut received = vec![0; READ_BYTES];
    let mut unsent = Vec::new();
    let mut sent = 0;
    // TLS keeps written bytes until they are flushed.
    let mut is_flushed = true;
    loop {
        if sent == unsent.len() {
            unsent.clear();
            sent = 0;
            state.borrow_mut().take_unsent(id, &mut unsent, WRITE_BYTES);
        }
        let end = state.borrow().end(id);
        if let Some(reason) = end {
            let farewell = async {
                writer.write_all(&unsent[sent..]).await?;
                writer.shutdown().await
            };
            // The connection ends in any case.
            let _late = tokio::time::timeout(FAREWELL_TIME, farewell).await;
            return reason;
        }
        let reads = state.borrow().reads(id);
        let has_unsent = sent < unsent.len();
        tokio::select! {
            count = reader.read(&mut received), if reads => match count {
                Ok(0) => return "the other end closed it".to_owned(),
                Ok(count) => state.borrow_mut().receive(id, &received[..count]),
                Err(error) => return reason(&error),
            },
            count = write(&mut writer, &unsent[sent..]), if has_unsent || !is_flushed => {
                match count {
                    Ok(count) => {
                        sent += count;
                        is_flushed = count == 0;
                    }
                    Err(error) => return reason(&error),
                }
            }
            () = wake.notified() => {}
        }
    }
}

/// Writes some of the bytes, or flushes if there are none. Returns the number of written bytes.
async fn write(writer: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> io::Result<usize> {
    match bytes.is_empty() {
        true => writer.flush().await.map(|()| 0),
        false => writer.write(bytes).await,
    }
}
