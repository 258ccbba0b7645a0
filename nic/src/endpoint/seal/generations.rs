//! A connection's keys by generation, and the state of the exchange for the next one.
//!
//! The client switches to the next generation with the server's answer, the server with the first
//! frame that it opens under it.

use spray_core::Time;
use spray_wire::{Rekey, RekeyMessage, Sealed};

use crate::endpoint::{
    HandshakeConfig,
    admission::limit::RateLimit,
    admission::retransmit::Retransmit,
    seal::noise::{Binding, Initiator, Responder, SessionKeys},
    seal::{Opener, Sealer, Verdict, generation},
};
use crate::keys::{Keys, PublicKey};

/// Age of a generation at which the client requests the next one, in picoseconds.
const REKEY_PS: u64 = 120_000_000_000_000;
/// Connections that started together request within this time, so that no poll has all their
/// exchanges.
const SPREAD_PS: u64 = 8_000_000_000_000;
/// Interval of a client's requests after the attempts of a handshake are used up. They do not end
/// the connection, unlike old keys.
const SLOWLY_PS: u64 = 1_000_000_000_000;
/// Minimum time between two exchanges of a connection that its server reads, in picoseconds.
const LEAST_PS: u64 = 60_000_000_000_000;

/// Exchanges that a server reads for all connections: 16 at once, and 1,000 a second, 100 us each.
pub(crate) type Rekeys = RateLimit<16, 1_000_000_000>;

/// Seals a connection's frames and opens the peer's.
#[derive(Debug)]
pub(crate) struct Seals {
    pub(crate) sealer: Sealer,
    /// Of the current generation.
    pub(crate) opener: Opener,
    /// Of the previous generation, for frames on slow paths.
    previous: Option<Box<Opener>>,
    binding: Binding,
    /// When the current generation started.
    pub(crate) since: Time,
    role: Role,
}

/// The side of the exchanges, and the state of the next one.
#[derive(Debug)]
enum Role {
    /// Requests: the schedule, and the pending request.
    Client { repeat: Retransmit, asking: Option<Box<Asking>> },
    /// Answers: when it last read a request, and its last answer.
    Server { read_at: Time, answered: Option<Box<Answered>> },
}

/// The client's exchange until the answer.
#[derive(Debug)]
struct Asking {
    initiator: Initiator,
    message: RekeyMessage,
    /// One answer may be read per request sent, since reading costs as much as requesting.
    reads: bool,
}

/// The server's exchange, until a frame of the next generation arrives.
#[derive(Debug)]
struct Answered {
    asked: RekeyMessage,
    answer: RekeyMessage,
    sealer: Sealer,
    opener: Opener,
    binding: Binding,
}

/// Why a message of an exchange is ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// Of another exchange than the next, or of the wrong side.
    Unexpected,
    /// Not authentic.
    Forged,
    /// Too soon after the previous one, or too many of all connections.
    TooMany,
}

impl Seals {
    /// Creates the first generation of a connection opened from here.
    pub(crate) fn of_client(now: Time, agreed: &SessionKeys) -> Self {
        let role = Role::Client { repeat: Retransmit::start(due(now, &agreed.binding)), asking: None };
        Self::first(now, agreed, role)
    }

    /// Creates the first generation of a connection opened by the peer.
    pub(crate) fn of_server(now: Time, agreed: &SessionKeys) -> Self {
        Self::first(now, agreed, Role::Server { read_at: now, answered: None })
    }

    fn first(now: Time, SessionKeys { secrets, binding }: &SessionKeys, role: Role) -> Self {
        let (sealer, opener) = (Sealer::new(&secrets.sending, 0), Opener::new(&secrets.receiving, 0));
        Self { sealer, opener, previous: None, binding: *binding, since: now, role }
    }

    /// Returns the peer's key, which every exchange authenticates.
    pub(crate) fn peer(&self) -> PublicKey {
        self.binding.peer()
    }

    /// Opens a frame, and decrypts its payload in place if it is authentic.
    #[inline]
    pub(crate) fn open(&mut self, now: Time, sealed: Sealed<'_>) -> Verdict {
        if generation(sealed.number) == self.opener.generation() {
            return self.opener.open(sealed);
        }
        self.open_other(now, sealed)
    }

    /// Opens a frame of the previous generation, or of the next if its exchange is answered.
    //= docs/specs/wire.md#WIRE-19 numbers and keys
    #[cold]
    fn open_other(&mut self, now: Time, sealed: Sealed<'_>) -> Verdict {
        let of = generation(sealed.number);
        if let Some(previous) = self.previous.as_deref_mut().filter(|previous| previous.generation() == of) {
            return previous.open(sealed);
        }
        if of == self.next_generation()
            && let Role::Server { answered, .. } = &mut self.role
            && let Some(Answered { opener, .. }) = answered.as_deref_mut()
        {
            let verdict = opener.open(sealed);
            if verdict == Verdict::Genuine
                && let Some(answered) = answered.take()
            {
                let Answered { sealer, opener, binding, .. } = *answered;
                self.go_on(now, sealer, opener, binding);
            }
            return verdict;
        }
        // Generations wrap after 2^16: half of them are before the current one.
        let is_old = self.opener.generation().wrapping_sub(of) < 1 << 15;
        if is_old { Verdict::Replayed } else { Verdict::Forged }
    }

    /// Returns the generation of the next exchange.
    pub(crate) fn next_generation(&self) -> u16 {
        self.opener.generation().wrapping_add(1)
    }

    /// Returns the client's request after [`Seals::rekey_at`], the same until it is answered.
    /// `None` without random numbers.
    //= docs/specs/endpoint.md#END-46 fresh keys
    pub(crate) fn request(&mut self, now: Time, keys: &Keys, config: &HandshakeConfig) -> Option<Rekey> {
        let generation = self.next_generation();
        let Role::Client { repeat, asking } = &mut self.role else { return None };
        if !repeat.again(now, config) {
            *repeat = Retransmit::none_until(now.after(SLOWLY_PS));
        }
        if asking.is_none() {
            let (initiator, message) = Initiator::rekey(keys, &self.binding, generation)?;
            *asking = Some(Box::new(Asking { initiator, message, reads: false }));
        }
        let asking = asking.as_deref_mut()?;
        asking.reads = true;
        Some(Rekey { generation, message: asking.message, answer: false })
    }

    /// Handles the server's answer: the client seals under the next generation from now on.
    //= docs/specs/endpoint.md#END-46 fresh keys
    pub(crate) fn take_answer(&mut self, now: Time, rekey: &Rekey) -> Result<(), Unusable> {
        let is_next = rekey.generation == self.next_generation();
        let Role::Client { asking: Some(asking), .. } = &mut self.role else { return Err(Unusable::Unexpected) };
        if !is_next {
            return Err(Unusable::Unexpected);
        }
        if !std::mem::take(&mut asking.reads) {
            return Err(Unusable::TooMany);
        }
        let agreed = asking.initiator.finish_rekey(&rekey.message).ok_or(Unusable::Forged)?;
        let (sealer, opener) = self.next(&agreed);
        self.go_on(now, sealer, opener, agreed.binding);
        self.role = Role::Client { repeat: Retransmit::start(due(now, &agreed.binding)), asking: None };
        Ok(())
    }

    /// Handles a client's request, and returns the answer. From now on the server opens the next
    /// generation, and seals under it after the first frame.
    //= docs/specs/endpoint.md#END-46 fresh keys
    pub(crate) fn take_request(
        &mut self,
        now: Time,
        keys: &Keys,
        rekey: &Rekey,
        limit: &mut Rekeys,
    ) -> Result<Rekey, Unusable> {
        let generation = self.next_generation();
        let Role::Server { read_at, answered } = &mut self.role else { return Err(Unusable::Unexpected) };
        if rekey.generation != generation {
            return Err(Unusable::Unexpected);
        }
        let answer = |message| Rekey { generation, message, answer: true };
        if let Some(known) = answered.as_deref().filter(|known| known.asked == rekey.message) {
            return Ok(answer(known.answer));
        }
        if answered.is_some() || now.since(*read_at) < LEAST_PS || !limit.allow(now) {
            return Err(Unusable::TooMany);
        }
        *read_at = now;
        let responder = Responder::rekey(keys, &self.binding, generation, &rekey.message);
        let (agreed, message) = responder.and_then(Responder::answer_rekey).ok_or(Unusable::Forged)?;
        let (sealer, opener) = self.next(&agreed);
        let made = Answered { asked: rekey.message, answer: message, sealer, opener, binding: agreed.binding };
        self.role = Role::Server { read_at: now, answered: Some(Box::new(made)) };
        Ok(answer(message))
    }

    /// Returns when the client requests next.
    pub(crate) fn rekey_at(&self) -> Time {
        match &self.role {
            Role::Client { repeat, .. } => repeat.at,
            Role::Server { .. } => Time::NEVER,
        }
    }

    fn next(&self, agreed: &SessionKeys) -> (Sealer, Opener) {
        let generation = self.next_generation();
        (Sealer::new(&agreed.secrets.sending, generation), Opener::new(&agreed.secrets.receiving, generation))
    }

    /// Switches to the next generation. Drops the one before the previous.
    fn go_on(&mut self, now: Time, sealer: Sealer, opener: Opener, binding: Binding) {
        self.sealer = sealer;
        let previous = std::mem::replace(&mut self.opener, opener);
        // Reuses the memory of the one before it.
        match &mut self.previous {
            Some(place) => **place = previous,
            None => self.previous = Some(Box::new(previous)),
        }
        (self.binding, self.since) = (binding, now);
    }
}

/// Returns when the client requests the generation after the one that starts now.
fn due(now: Time, binding: &Binding) -> Time {
    now.after(REKEY_PS + binding.number() % SPREAD_PS)
}

#[cfg(test)]
mod tests;
