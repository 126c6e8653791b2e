// What the C libraries do with a run of sectors, each of which is a call with
// an IV of its own: the sector's number, little-endian, in units of 512 bytes
// from first. n is a multiple of sector_size.
#include <stddef.h>
#include <stdint.h>

enum mode { ECB, CBC, CTR, XTS };

// gcrypt_open returns Serpent with a key, which in XTS is two, or NULL.
void *gcrypt_open(enum mode mode, const uint8_t *key, size_t key_size);
// gcrypt_crypt returns whether it succeeded.
int gcrypt_crypt(void *cipher, enum mode mode, int encrypt, uint8_t *dst, const uint8_t *src,
                 size_t n, size_t sector_size, uint64_t first);
void gcrypt_close(void *cipher);

// openssl_open returns AES-256-XTS in one direction with a key of 64 bytes, or
// NULL.
void *openssl_open(int encrypt, const uint8_t *key);
// openssl_crypt returns whether it succeeded.
int openssl_crypt(void *cipher, uint8_t *dst, const uint8_t *src, size_t n, size_t sector_size,
                  uint64_t first);
void openssl_close(void *cipher);

enum { IV_SIZE = 16, SECTOR_UNIT = 512 };

static inline void make_iv(uint8_t iv[IV_SIZE], uint64_t number)
{
	for (int i = 0; i < IV_SIZE; i++)
		iv[i] = i < 8 ? number >> (8 * i) : 0;
}
