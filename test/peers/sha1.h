// What the C libraries do with SHA-1: many messages, or one key by
// PBKDF2-HMAC-SHA1. All functions return whether they succeeded.
#include <stddef.h>
#include <stdint.h>

enum { SUM_SIZE = 20 };

// messages are count of size bytes in a row, where count is a power of two, at
// most 256. Digest i goes to sums + i * SUM_SIZE. It is that of message i or,
// if each is to wait for the last, of the message that next_message names.
struct messages {
	const uint8_t *bytes;
	size_t size, count;
	int waiting;
};

int gcrypt_digests(uint8_t *sums, struct messages messages);
int nettle_digests(uint8_t *sums, struct messages messages);
int openssl_digests(uint8_t *sums, struct messages messages);

struct derivation {
	const uint8_t *password;
	size_t password_size;
	const uint8_t *salt;
	size_t salt_size;
	unsigned iterations;
};

int gcrypt_key(uint8_t *key, size_t key_size, struct derivation d);
int nettle_key(uint8_t *key, size_t key_size, struct derivation d);
int openssl_key(uint8_t *key, size_t key_size, struct derivation d);

// next_message returns the message for digest i. If each waits for the last, the
// first byte of that chooses it, so that no call can start early.
static inline const uint8_t *next_message(struct messages m, const uint8_t *sums, size_t i)
{
	size_t chosen = i;

	if (m.waiting)
		chosen = i == 0 ? 0 : sums[(i - 1) * SUM_SIZE] & (m.count - 1);
	return m.bytes + chosen * m.size;
}
