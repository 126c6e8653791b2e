#include <nettle/pbkdf2.h>
#include <nettle/sha1.h>

#include "sha1.h"

int nettle_digests(uint8_t *sums, struct messages messages)
{
	for (size_t i = 0; i < messages.count; i++) {
		struct sha1_ctx hash;

		sha1_init(&hash);
		sha1_update(&hash, messages.size, next_message(messages, sums, i));
		sha1_digest(&hash, SUM_SIZE, sums + i * SUM_SIZE);
	}
	return 1;
}

int nettle_key(uint8_t *key, size_t key_size, struct derivation d)
{
	pbkdf2_hmac_sha1(d.password_size, d.password, d.iterations, d.salt_size, d.salt, key_size, key);
	return 1;
}
