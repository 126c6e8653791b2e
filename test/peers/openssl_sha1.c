// The functions of SHA-1 alone are deprecated, but EVP's need much longer for a
// short message.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/evp.h>
#include <openssl/sha.h>

#include "sha1.h"

int openssl_digests(uint8_t *sums, struct messages messages)
{
	for (size_t i = 0; i < messages.count; i++) {
		SHA_CTX hash;

		if (!SHA1_Init(&hash) ||
		    !SHA1_Update(&hash, next_message(messages, sums, i), messages.size) ||
		    !SHA1_Final(sums + i * SUM_SIZE, &hash))
			return 0;
	}
	return 1;
}

int openssl_key(uint8_t *key, size_t key_size, struct derivation d)
{
	return PKCS5_PBKDF2_HMAC((const char *)d.password, d.password_size, d.salt, d.salt_size,
	                         d.iterations, EVP_sha1(), key_size, key);
}
