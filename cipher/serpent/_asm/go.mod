module serpcrypt/cipher/serpent/_asm

go 1.26.0
